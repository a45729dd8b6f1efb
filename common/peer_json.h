/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON from the Unix sockets of another process, by paths that hold in its root folder. The
 * process, its command line and its answers may be hostile. */
#ifndef RINGTAP_COMMON_PEER_JSON_H
#define RINGTAP_COMMON_PEER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

#define RT_PEER_ARGS_MAX 4096

/* The command line of a process: arguments that each end with a zero byte. Returns its length; 0:
 * it cannot be read. */
size_t rt_peer_args(pid_t pid, char args[RT_PEER_ARGS_MAX]);

/* The value of a variable in the environment with which the process was started. fallback: if it is
 * not set or cannot be read. False: it does not fit into size bytes. */
bool rt_peer_env(pid_t pid, const char *name, const char *fallback, char *value, size_t size);

/* Connects to the socket of this path, of SOCK_STREAM or SOCK_SEQPACKET. uid: the user of the
 * process. A process of another user may only name a socket of its user: otherwise it could make
 * root connect to any. A descriptor that does not block; -EPERM: the socket, or the process that
 * listens, belongs to another user; -errno. */
int rt_peer_connect(pid_t pid, uid_t uid, const char *path, int type);

/* So connects to a stream socket, sends a question, and receives one JSON value of at most 4 MiB
 * into *answer, for json_decref(). 0; -ETIMEDOUT; -EPROTO: not JSON, or too long; -errno. */
int rt_peer_json(pid_t pid, uid_t uid, const char *path, const char *question, int within_ms,
	json_t **answer);

#endif
