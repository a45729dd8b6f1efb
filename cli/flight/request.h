/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a folder of incidents, and requests to the recorder that has it. */
#ifndef RINGTAP_CLI_FLIGHT_REQUEST_H
#define RINGTAP_CLI_FLIGHT_REQUEST_H

#include <stddef.h>

#define REQUEST_COMMENT_MAX 200 /* bytes, with the terminating zero */

/* Opens the folder for a recorder, makes it where it is missing. The descriptor of its lock, or
 * -errno after a message. */
int folder_lock(const char *path);

/* Asks the recorder of the folder for an incident now; comment: what it says about it, NULL:
 * nothing. The folder need not be trusted: only a process of the lock's owner that has the lock is
 * asked. 0; -ESRCH: no recorder writes there; -EPERM: it is not certain which process does;
 * -errno. */
int request_send(const char *folder, const char *comment);
/* Of the recorder: takes the comment of the last request, printable; "": there is none. */
void request_take(const char *folder, char comment[REQUEST_COMMENT_MAX]);

#endif
