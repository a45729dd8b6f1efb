/* SPDX-License-Identifier: BSD-3-Clause */
/* Ending by SIGINT, SIGTERM and SIGHUP, of commands that wait. */
#ifndef RINGTAP_BASE_SIGNALS_H
#define RINGTAP_BASE_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* From here on these signals only wake stop_wait(); SIGPIPE is ignored. They are blocked in threads
 * that begin later, so call it first. 0 or -errno. */
int stop_catch(void);
/* The same for the first of each of them: the next one ends the process. */
int stop_catch_first(void);
/* Waits; true if a signal came, also earlier. */
bool stop_wait(uint64_t ns);
/* From now on, after ns, stop_wait() returns true as well. 0: by a signal only. */
void stop_after(uint64_t ns);
/* ns, or what is left of stop_after() if that is less: for waiting by stop_fd(). */
uint64_t stop_left(uint64_t ns);
/* Becomes readable when a signal came. */
int stop_fd(void);
/* One wish to end may come several times within moments: timeout(1) signals its child and then the
 * group, and the threads of a parent that dies each send PR_SET_PDEATHSIG's. Before that long after
 * the first, none is another wish. */
#define STOP_AGAIN_NS (NS_PER_S / 2)
/* From here on only another wish counts: for what comes after the one that ended the waiting. */
void stop_forget(void);

#endif
