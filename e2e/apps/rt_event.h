/* SPDX-License-Identifier: BSD-3-Clause */
/* A USDT event in the program and in a library, by any thread. */
#ifndef RINGTAP_E2E_APPS_RT_EVENT_H
#define RINGTAP_E2E_APPS_RT_EVENT_H

/* Pass the event if it is traced, by its semaphore. 1: passed; 0: not traced; -ENOTSUP: built
 * without <sys/sdt.h>. */
int rt_event_program(void);
int rt_event_library(void);

/* where: "program", or the path of the library, which stays loaded. As above, or -errno. */
int event_pass(const char *where);
/* Maps a file's code, as a loader does; it stays mapped. 0 or -errno. */
int event_map(const char *path);
/* Starts a thread that passes the event of the program when event_go() is called, which returns
 * what that returned. One at a time. */
int event_later(void);
int event_go(void);

#endif
