/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a folder of incidents, and requests to the recorder that has it. */
#ifndef RINGTAP_RECORDER_REQUEST_H
#define RINGTAP_RECORDER_REQUEST_H

#include <stddef.h>

#define REQUEST_COMMENT_MAX 200  /* bytes, with the terminating zero */
#define REQUEST_WHY_MAX     1025 /* the same of a reason */

/* Opens the folder for a recorder, makes it where it is missing. The descriptor of its lock, or
 * -errno after a message. */
int folder_lock(const char *path);

/* Asks the recorder of the folder for an incident now; comment: what it says about it, NULL:
 * nothing. The folder need not be trusted: only a process of the lock's owner that has the lock is
 * asked. 0; -ESRCH: no recorder writes there; -EPERM: it is not certain which process does;
 * -errno. */
int request_send(const char *folder, const char *comment);
/* The same, and waits until the incident has begun. -ECANCELED: the recorder makes none, why is its
 * reason; -ETIMEDOUT: it has not taken the request, which is removed. */
int request_send_within(
	const char *folder, const char *comment, int timeout_ms, char why[REQUEST_WHY_MAX]);

/* The value of the signal that comes with requests; others stand for one without a comment. */
#define REQUEST_VALUE 0x7274

/* Begins an incident with this comment, printable, which may be "". 0, or -errno after a message,
 * which the sender prints. */
typedef int (*request_fn)(void *ctx, const char *comment);
/* Calls begin() for each request in the recorder's folder. Their number. */
unsigned requests_take(const char *folder, request_fn begin, void *ctx);

#endif
