/* SPDX-License-Identifier: BSD-3-Clause */
/* Root of one user namespace is the overflow user (65534) in another one that does not map it. */
#ifndef RINGTAP_READER_FIND_AS_USER_H
#define RINGTAP_READER_FIND_AS_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Calls a function in a thread of its own: it may change the user and namespaces of that. What it
 * returned, or -errno. */
int rt_in_thread(int (*call)(void *arg), void *arg);

/* Gives the thread the rights of a user, as far as it accesses files and as peers see it. 0;
 * -EPERM: CAP_SETUID is missing. */
int rt_become_user(uid_t uid);

/* Writes the reason why this user could not connect; without it a probe's refusal of root would be
 * taken for it. */
void rt_as_user_failed(uid_t uid, int error, char *err, size_t errlen);

/* Whether this process is root and the other one lives in another user namespace. */
bool rt_is_nobody_there(pid_t pid);

#endif
