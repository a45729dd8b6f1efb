/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving control messages (proto.h) with descriptors. */
#ifndef RINGTAP_COMMON_IPC_H
#define RINGTAP_COMMON_IPC_H

#include <stddef.h>
#include <stdint.h>

#include "proto.h"

/* Fills in the header of a message of len bytes. */
void rt_msg_init(struct rt_msg_header *h, uint16_t type, uint32_t len);

/* Sends one datagram with fds attached (fd_count may be 0), without waiting for room and without
 * SIGPIPE. 0 or -errno. */
int rt_msg_send(int sock, const struct rt_msg_header *h, const int *fds, unsigned fd_count);

/* Receives one datagram into buf; waits up to timeout_ms (-1: no limit, 0: not at all).
 * Descriptors go to fds (at most fd_max; further ones are closed), their number to *fd_count;
 * the caller closes them. fds may be NULL with fd_max 0. Returns its length; 0: the peer has
 * closed; -ETIMEDOUT; -EMSGSIZE: it did not fit; -EPROTO: shorter than a header, wrong magic, or
 * its len field disagrees; -EPROTOTYPE: other version; -errno. On any error received descriptors
 * have been closed. */
int rt_msg_recv(int sock, void *buf, size_t size, int *fds, unsigned fd_max, unsigned *fd_count,
	int timeout_ms);

/* Copies a C string into a fixed field, cut and zero-terminated, the rest zeroed. */
void rt_str_set(char *dst, size_t size, const char *src);

#endif
