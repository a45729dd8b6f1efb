/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_CONTROL_PLUGIN_H
#define RINGTAP_PROBE_CONTROL_PLUGIN_H

/* Everything that must be ready before the first hook. Idempotent. 0 or -errno. */
int rt_probe_init(void);

#endif
