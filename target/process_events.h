/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's reports of what processes do (its connector, CONFIG_PROC_EVENTS): those that execute
 * a program, and those that name a thread, as EAL does. */
#ifndef RINGTAP_TARGET_PROCESS_EVENTS_H
#define RINGTAP_TARGET_PROCESS_EVENTS_H

/* A descriptor that is readable after an event; -errno: the kernel does not report to this process,
 * as without CAP_NET_ADMIN and in containers. */
int process_events_open(void);
/* Takes what there is. */
void process_events_take(int fd);

/* Has a socket take only those events, of messages of the connector. 0 or -errno. */
int process_events_filter(int fd);

#endif
