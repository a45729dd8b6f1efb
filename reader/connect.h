/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of applications. docs/memory-model.md, "Which sockets are trusted". */
#ifndef RINGTAP_READER_CONNECT_H
#define RINGTAP_READER_CONNECT_H

#include <stddef.h>
#include <sys/types.h>

#include "common/proto.h"

#define RT_TELEMETRY_SOCKET "dpdk_telemetry.v2"

/* A runtime folder. It stays open, so that all checks and uses refer to the same one. */
struct rt_folder {
	int fd;
	uid_t uid; /* its owner; all files used in it must have the same one */
};

/* Opens a runtime folder. 0; -EPERM: it is not trusted, the reason is in err; -errno. */
int rt_folder_open(struct rt_folder *f, const char *dir, char *err, size_t errlen);
void rt_folder_close(struct rt_folder *f);

/* Connects to the Unix SOCK_SEQPACKET socket of this name in the folder, waiting up to timeout_ms
 * while its backlog is full. The descriptor; -EAGAIN: the backlog stayed full; -EPERM: the socket
 * or its listener does not belong to the folder's owner, see err; -errno. */
int rt_folder_connect(
	const struct rt_folder *f, const char *name, int timeout_ms, char *err, size_t errlen);

/* The number after "BASE:" in a socket's name, 0 for BASE alone; -1: another name. */
int rt_socket_instance(const char *name, const char *base);

/* Applications without a shared configuration may share a runtime folder. DPDK's telemetry appends
 * ":1" to the socket name of the second one, and so on; the probe appends the same suffix. The
 * address of such an application is "FOLDER#1". Splits an address. A folder that exists with this
 * whole name has precedence. 0 or -ENAMETOOLONG. */
int rt_address_split(const char *app, char *dir, size_t size, unsigned *instance);

/* Connects to a socket of the application at an address. base: the socket name of the first
 * application in the folder. The descriptor or -errno; -EPERM as above; -EHOSTDOWN: its process is
 * stopped and accepts no connection. */
int rt_connect(const char *app, const char *base);
/* Likewise; err has the reason after -EPERM and -EHOSTDOWN, else it is empty. */
int rt_connect_why(const char *app, const char *base, char *err, size_t errlen);
/* Likewise, with the full name of the socket. */
int rt_connect_name(const char *app, const char *name, char *err, size_t errlen);

#endif
