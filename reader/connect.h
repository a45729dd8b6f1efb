/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of applications. docs/memory-model.md, "Which sockets are trusted". */
#ifndef RINGTAP_READER_CONNECT_H
#define RINGTAP_READER_CONNECT_H

#include <stddef.h>
#include <sys/types.h>

#include "common/proto.h"

#define RT_TELEMETRY_SOCKET "dpdk_telemetry.v2"

/* A runtime folder, held open, so that checks and use are of the same one. */
struct rt_folder {
	int fd;
	uid_t uid; /* its owner, and that of everything in it that is used */
};

/* Opens a runtime folder. 0; -EPERM: it may not be trusted, and why is in err; -errno. */
int rt_folder_open(struct rt_folder *f, const char *dir, char *err, size_t errlen);
void rt_folder_close(struct rt_folder *f);

/* Connects to the Unix SOCK_SEQPACKET socket of this name in the folder, waiting up to patience_ms
 * for its listener to have room. The descriptor; -EAGAIN: it has none; -EPERM: the socket or its
 * listener does not belong to the folder's owner, see err; -errno. */
int rt_folder_connect(
	const struct rt_folder *f, const char *name, int patience_ms, char *err, size_t errlen);

/* The number behind "BASE:" in a socket's name, 0 for BASE itself; -1: it is neither. */
int rt_socket_instance(const char *name, const char *base);

/* Applications without a shared configuration may share a runtime folder. DPDK's telemetry gives
 * the socket of the second one the suffix ":1", and so on, and the probe the same one to its own;
 * the application's address is then "FOLDER#1". Splits one. A folder that exists is one, whatever
 * its name. 0 or -ENAMETOOLONG. */
int rt_address_split(const char *app, char *dir, size_t size, unsigned *instance);

/* Connects to a socket of the application at an address: base is the name of that of the first
 * application in the folder. The descriptor or -errno; -EPERM as above;
 * -EHOSTDOWN: it takes no connection since its process is stopped. */
int rt_connect(const char *app, const char *base);
/* Likewise; why is in err after -EPERM and -EHOSTDOWN, else it is empty. */
int rt_connect_why(const char *app, const char *base, char *err, size_t errlen);
/* Likewise, with the socket's very name. */
int rt_connect_name(const char *app, const char *name, char *err, size_t errlen);

#endif
