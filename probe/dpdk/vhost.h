/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices of the vhost library (vhost-user) that the application polls itself: they are no ethdev.
 * Their packets pass by rte_vhost_dequeue_burst() and rte_vhost_enqueue_burst(), or the
 * asynchronous functions instead of these, whose calls are diverted to probe/burst/vhost_burst.c
 * while ports are followed. A device is a port: by its socket's path, as the number of a device
 * changes with each connection. The port appears at the first poll of the device, and is gone when
 * the application unregisters the path.
 *
 * Ports and their queues are static memory, so a thread may still be in one of our functions after
 * the calls have been restored. Queue n is the pair n of virtqueues.
 */
#ifndef RINGTAP_PROBE_DPDK_VHOST_H
#define RINGTAP_PROBE_DPDK_VHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_config.h>

#include "common/atomics.h"
#include "common/proto.h"

#define RT_VHOST_PORTS     64
#define RT_VHOST_DEVICES   1024 /* the library's limit */
#define RT_VHOST_RINGS     256  /* the same, of a device */
#define RT_VHOST_SETTLE_MS 20   /* within this time, threads poll each of their devices once */
#define RT_VHOST_NONE      UINT16_MAX

struct rte_mbuf;
struct rte_mempool;

/* The library's functions. Those with a DMA device are NULL where there are none. The last two
 * arguments of submit are passed on as the registers that they are in: they differ by release, and
 * 21.11 has none. */
struct rt_vhost_calls {
	uint16_t (*dequeue)(int vid, uint16_t queue, struct rte_mempool *pool,
		struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*enqueue)(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
	uint16_t (*try_dequeue)(int vid, uint16_t queue, struct rte_mempool *pool,
		struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma, uint16_t vchan);
	uint16_t (*submit)(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n,
		uintptr_t dma, uintptr_t vchan);
};
extern struct rt_vhost_calls rt_vhost_calls;

/* By number of the device: its port id; 0: find it out; RT_VHOST_NONE. Atomic. */
extern uint16_t rt_vhost_ids[RT_VHOST_DEVICES];

static inline bool rt_port_is_vhost(uint16_t port)
{
	return port >= RTE_MAX_ETHPORTS;
}

/* In a thread that polls the device, which is valid. Returns what is in rt_vhost_ids then. */
uint16_t rt_vhost_resolve(int vid);

/* The other functions are the control thread's, or need the control lock. */

/* Diverts the calls. Where it cannot, the application's calls are as before, without such ports. */
void rt_vhost_begin(void);
/* Restores the calls; all ports are gone then. */
void rt_vhost_end(void);
/* Diverts the calls of objects that were loaded meanwhile, and has each device's path read again.
 */
void rt_vhost_tick(void);
/* Whether calls are diverted. */
bool rt_vhost_is_on(void);
/* Ports from here on, of RT_VHOST_PORTS, have not been in use. Any thread. */
uint32_t rt_vhost_top(void);

/* For ports with rt_port_is_vhost(), see ports.h. */
bool rt_vhost_alive(uint16_t port);
int rt_vhost_name(uint16_t port, char out[RT_NAME_LEN]);
int rt_vhost_describe(uint16_t port, struct rt_msg_port *out);
int rt_vhost_queues(uint16_t port, uint32_t out[2]);

#endif
