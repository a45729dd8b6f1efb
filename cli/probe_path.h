/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_CLI_PROBE_PATH_H
#define RINGTAP_CLI_PROBE_PATH_H

/* Path of the probe for EAL's -d: the one built or installed together with this program. Static. */
const char *probe_path(void);

#endif
