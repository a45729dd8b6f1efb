/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections at the application's limit of descriptors: refused with a reason instead of left to
 * make poll(2) return again and again. */
#ifndef RINGTAP_PROBE_CORE_ACCEPT_H
#define RINGTAP_PROBE_CORE_ACCEPT_H

/* Opens the descriptor that is given up to refuse a connection; -1: there is none. */
int rt_accept_reserve(void);

/* Takes the next connection of a listening socket, non-blocking and close-on-exec. -EAGAIN: there
 * is none. Any other -errno lasts for some time (-EMFILE, -ENFILE, -ENOBUFS, -ENOMEM, …): the
 * connection has been refused if *reserve could be given up for it, and the caller does not poll
 * the socket for RT_ACCEPT_REST_MS. */
int rt_accept(int listen_fd, int *reserve);

#define RT_ACCEPT_REST_MS 500

#endif
