/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets with abstract names, of applications that have no runtime folder: they belong to a
 * network namespace. The address of such an application is "/proc/PID/net/@NAME".
 */
#ifndef RINGTAP_READER_FIND_ABSTRACT_H
#define RINGTAP_READER_FIND_ABSTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "common/proto.h"

#define RT_ABSTRACT_PREFIX "@" RT_ABSTRACT_NAME

bool rt_is_abstract(const char *address);

/* Connects to the application. The descriptor or -errno; -EPERM: its user or process is not the one
 * expected, the reason is in err, as it is if its user in another user namespace cannot connect. */
int rt_abstract_connect(const char *address, int timeout_ms, char *err, size_t errlen);

/* The process that listens on a name, such as "@ringtap.sock/rte/1", in the network namespace of a
 * process. 0 or -errno. */
int rt_abstract_peer(pid_t in_net_of, const char *name, struct ucred *peer);

#endif
