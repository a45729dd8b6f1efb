/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket's file: applications may share a runtime folder (--no-shconf, --in-memory). */
#ifndef RINGTAP_PROBE_CONTROL_SOCKET_H
#define RINGTAP_PROBE_CONTROL_SOCKET_H

#include <sys/stat.h>
#include <sys/un.h>

#include "common/proto.h"

struct rt_listener {
	int fd;
	char name[RT_SOCKET_NAME_MAX]; /* name of the file; empty: it has an abstract name */
	struct sockaddr_un addr;
	struct stat file; /* what bind() made */
};

/* Listens on `ringtap.sock` in the folder, or on `ringtap.sock:N`: with the number that DPDK's
 * telemetry has in this process, or the first that no other application uses. secondary, if not 0:
 * the id of this process, which is a secondary one, and listens on `ringtap.sock@PID`. Replaces the
 * socket of a killed application, never a live one. Without a folder that can have a socket (dir
 * may be ""), a primary process has an abstract name. Blocks for at most a tenth of a second. 0 or
 * -errno. */
int rt_listener_open(struct rt_listener *l, const char *dir, pid_t secondary);
/* Closes it, and removes its file if it is still the one made. */
void rt_listener_close(struct rt_listener *l);

#endif
