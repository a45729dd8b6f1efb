/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that hold packets: no other user reads them, and none may have chosen them. */
#ifndef RINGTAP_BASE_PACKET_FILE_H
#define RINGTAP_BASE_PACKET_FILE_H

#include <stdbool.h>

/* Opens a file for writing, with mode 0600, for the group 0640. One that exists keeps its content
 * and gets this mode; -EPERM, if it is a file or a pipe of another user, or a link of another
 * user's to a file that is not there; -EBUSY: another program has opened it by this function. A
 * descriptor or -errno. */
int packet_file_open(const char *path, bool group_read, bool *created);
/* The reason, for a message. */
const char *packet_file_error(int error);

#endif
