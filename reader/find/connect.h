/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of applications. docs/memory-model.md, "Which sockets are trusted". */
#ifndef RINGTAP_READER_FIND_CONNECT_H
#define RINGTAP_READER_FIND_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#include "address.h"

/* A runtime folder. It stays open, so that all checks and uses refer to the same one. */
struct rt_folder {
	int fd;
	uid_t uid; /* its owner; all files used in it must have the same one */
};

/* Opens a runtime folder. 0; -EPERM: it is not trusted, the reason is in err; -errno. */
int rt_folder_open(struct rt_folder *f, const char *dir, char *err, size_t errlen);
void rt_folder_close(struct rt_folder *f);
/* Splits an address, and opens its folder. 0; -ENOENT: there is none; else as rt_folder_open(). */
int rt_address_open(
	const char *app, struct rt_address *a, struct rt_folder *f, char *err, size_t errlen);

/* Connects to the Unix SOCK_SEQPACKET socket of this name in the folder, waiting up to timeout_ms
 * while its backlog is full. The descriptor; -EAGAIN: the backlog stayed full; -EPERM: the socket
 * or its listener does not belong to the folder's owner, see err; -errno, with a reason in err if a
 * probe in another user namespace cannot be connected to as its user. */
int rt_folder_connect(
	const struct rt_folder *f, const char *name, int timeout_ms, char *err, size_t errlen);

/* Whether a process has bound the socket of this name. Nothing of this reaches the process. 0: as a
 * datagram socket; 1: as another one; -ECONNREFUSED: none has; -EPERM: it is not the folder's
 * owner's; -errno. */
int rt_folder_bound(const struct rt_folder *f, const char *name, struct stat *st);

/* Whether a process locks the config file of the folder: a primary process does so until it ends,
 * and the folder remains after that. *pid: the process; 0: of another PID namespace. */
bool rt_folder_locked(const struct rt_folder *f, pid_t *pid);

/* Whether that process has not finished rte_eal_init(): no socket of its answers, or is there, yet.
 * False: also where it shares no configuration. */
bool rt_folder_starts(const struct rt_folder *f);

/* connect() that waits up to timeout_ms while the backlog is full. */
int rt_connect_retrying(int fd, const struct sockaddr_un *addr, socklen_t size, int timeout_ms);

/* Connects to a socket of the application at an address. base: the socket name of the first
 * application in the folder. The descriptor or -errno; -EPERM as above; -EHOSTDOWN: its process is
 * stopped and accepts no connection. */
int rt_connect(const char *app, const char *base);
/* The same; err has the reason after -EPERM and -EHOSTDOWN, else it is empty. */
int rt_connect_why(const char *app, const char *base, char *err, size_t errlen);
/* The same, with the full name of the socket. */
int rt_connect_name(const char *app, const char *name, char *err, size_t errlen);
/* Writes the reason of such an error into err, if that is empty. Returns the error; -EAGAIN: the
 * application starts. */
int rt_connect_failed(const char *app, const char *name, int error, char *err, size_t errlen);

#endif
