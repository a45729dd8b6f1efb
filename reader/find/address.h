/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of applications, and the names of their sockets.
 *
 *   FOLDER          the application of a runtime folder
 *   FOLDER#1        a further one without a shared configuration: DPDK's telemetry appends ":1" to
 *                   the name of its socket, and so on; the probe appends the same suffix
 *   FOLDER/4711     a secondary process, by its process id in its own PID namespace
 *   FOLDER/1#1      another one with the same id, of another namespace
 */
#ifndef RINGTAP_READER_FIND_ADDRESS_H
#define RINGTAP_READER_FIND_ADDRESS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/proto.h"

#define RT_TELEMETRY_SOCKET "dpdk_telemetry.v2"
#define RT_MP_SOCKET        "mp_socket_" /* a secondary's: PID_NUMBER in hexadecimal digits */

struct rt_address {
	char dir[PATH_MAX];
	pid_t secondary; /* 0: it is not a secondary process */
	unsigned instance;
};

/* A folder that exists with the whole name has precedence. 0 or -ENAMETOOLONG. */
int rt_address_split(const char *app, struct rt_address *out);

/* Writes the suffix of the folder in an address, and of the file-prefix in a name. Returns its
 * length. */
int rt_address_suffix(const struct rt_address *a, char *out, size_t size);

/* The name of a socket. base: that of the first application in the folder. 0; -ENOENT: a secondary
 * process has no such socket. */
int rt_address_socket(const struct rt_address *a, const char *base, char name[RT_SOCKET_NAME_MAX]);

/* The number after "BASE:" in a socket's name, 0 for BASE alone; -1: another name. */
int rt_socket_instance(const char *name, const char *base);

/* The same of the probe's socket in a secondary process; *pid becomes its process id. */
int rt_socket_secondary(const char *name, pid_t *pid);

/* The process id in the name of a secondary's socket of DPDK; 0: another name. */
pid_t rt_socket_mp(const char *name);

#endif
