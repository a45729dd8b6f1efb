/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in the buffers of packet sockets. */
#ifndef RINGTAP_HOST_FRAME_H
#define RINGTAP_HOST_FRAME_H

#include <rte_mempool.h>

#include "port.h"

struct queue {
	uint16_t port, queue;
	uint16_t linktype;
	uint8_t *frames; /* as the port's; NULL: a driver receives */
	uint32_t frame_size, frame_count;
	uint32_t next; /* frame to be read */
};

/* Registers what mbufs need. 0 or -errno. */
int frame_init(struct rte_mempool *pool);
struct ringtap_probe_source;
/* A port, as far as the probe needs it. */
void frame_source(const struct port *p, struct ringtap_probe_source *out);
/* Time of the packet that is the k-th from now on in the buffer. 0: it has not come. */
uint64_t frame_time(const struct queue *q, uint32_t k);
/* The next packet, copied, with its time stamp; *sent: by this host. NULL: no memory; try again. */
struct rte_mbuf *frame_take(struct queue *q, bool *sent);
/* False: it is the next packet's other appearance, on the loopback. Releases it. */
bool frame_counts(struct queue *q);
void frame_set_time(struct rte_mbuf *m, uint64_t ns);

#endif
