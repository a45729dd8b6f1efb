/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_TRACE_LOAD_H
#define RINGTAP_PROBE_TRACE_LOAD_H

#include <stdbool.h>
#include <stddef.h>

/* Records the probe's folder, before the application can change its working directory. */
void rt_trace_load_early(void);
/* Takes up the LTTng provider if it has been loaded. Cheap; any thread. True: it is loaded. */
bool rt_trace_find_lttng(void);
/* Loads it from the probe's own folder; if the probe is linked into the program, from the folder
 * where libraries were to be installed. LTTng may take seconds to find its daemon. Any thread
 * but the control thread. 0 or -errno, with a sentence in err. */
int rt_trace_load_lttng(char *err, size_t size);

#endif
