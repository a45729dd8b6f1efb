/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections at the application's limit of descriptors: refuse them with a reason; otherwise
 * poll(2) would return again and again. */
#ifndef RINGTAP_PROBE_CONTROL_ACCEPT_H
#define RINGTAP_PROBE_CONTROL_ACCEPT_H

#include <stdbool.h>

/* Opens the spare descriptor that rt_accept() closes to refuse a connection. -1: none is left. */
int rt_accept_reserve(void);

/* Accepts the next connection of a listening socket, non-blocking and close-on-exec. -EAGAIN:
 * there is none. Any other -errno persists for some time (-EMFILE, -ENFILE, -ENOBUFS, -ENOMEM,
 * …): the connection has been refused if *reserve could be closed for it, and the caller does
 * not poll the socket for RT_ACCEPT_REST_MS. */
int rt_accept(int listen_fd, int *reserve);

#define RT_ACCEPT_REST_MS 500

/* Sends the reason and closes the connection. */
void rt_accept_refuse(int fd, int why, const char *text);

/* Whether the peer is root or the application's user. If the application runs as the kernel's
 * overflow user in a user namespace, all that it does not map look the same: on an abstract socket
 * none of them is. */
bool rt_accept_allows(int fd);

#endif
