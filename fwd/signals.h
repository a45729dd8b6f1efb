/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGINT, SIGTERM and SIGHUP end a run; they are taken by the main thread alone, when it waits.
 * They stay blocked to the end of the process: a second one may neither cost the report nor leave
 * anything behind. SIGQUIT ends it at once. */
#ifndef RINGTAP_FWD_SIGNALS_H
#define RINGTAP_FWD_SIGNALS_H

#include <stdint.h>

/* Before any thread is made: threads inherit that the signals are blocked. */
void signals_block(void);
/* Waits so long. The signal, 0 if none came. */
int signals_wait(uint64_t ns);

#endif
