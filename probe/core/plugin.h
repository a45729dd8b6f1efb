/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_CORE_PLUGIN_H
#define RINGTAP_PROBE_CORE_PLUGIN_H

/* Everything that must be ready before the first hook. Idempotent. 0 or -errno. */
int rt_probe_init(void);

/* EAL has memory, and probes its buses now. */
void rt_probe_buses_begin(void);

#endif
