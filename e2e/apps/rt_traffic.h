/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic of rt_play: single bursts from the main thread, and the maximum rate from workers. */
#ifndef RINGTAP_E2E_APPS_RT_TRAFFIC_H
#define RINGTAP_E2E_APPS_RT_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "rt_shape.h"

#define TRAFFIC_BURST_MAX 512

struct burst_times {
	uint64_t before_ns; /* CLOCK_REALTIME around the calls of the burst function */
	uint64_t after_ns;
};

/* Receives or sends n packets of the shape in bursts of at most TRAFFIC_BURST_MAX. Returns their
 * number, or -errno. */
int64_t traffic_rx(uint16_t port, uint16_t queue, const struct shape *s, uint32_t n, uint32_t burst,
	struct burst_times *times);
int64_t traffic_tx(uint16_t port, uint16_t queue, const struct shape *s, uint32_t n, uint32_t burst,
	struct burst_times *times);

/* From now on traffic_rx() keeps what it receives, or frees it. Returns the packets kept. */
int64_t traffic_hold(bool on);
/* Frees the n oldest of them. Returns how many there were. */
int64_t traffic_release(uint32_t n);
/* The n youngest of them, of the pool `own`, go back to it without a trace in the mbuf. Returns
 * how many there were. */
int64_t traffic_take_back(uint32_t n);

/* Each worker sends n packets on the same queue; so do non-EAL threads, which start together.
 * Return the sum, or -errno. */
int64_t traffic_blast(uint16_t port, uint16_t queue, unsigned workers, uint64_t n);
int64_t traffic_threads(uint16_t port, uint16_t queue, unsigned threads, uint64_t n);

/* Non-EAL threads, each of which polls another queue from now on; they send n packets each on their
 * queues, and end. Return their number, the sum, or -errno. */
int64_t traffic_crowd(uint16_t port, unsigned threads);
int64_t traffic_crowd_send(uint64_t n);
int64_t traffic_crowd_end(void);

/* Receives exactly n packets in the main thread. Returns n. */
int64_t traffic_poll(uint16_t port, uint16_t queue, uint64_t n);

/* Polls n times in the main thread without receiving packets. Returns n, or -EIO. */
int64_t traffic_idle(uint16_t port, uint16_t queue, uint64_t n);

/* A worker forwards packets from one port to the other at the maximum rate until it is stopped. It
 * also polls a second queue, if that is another one, and sleeps when the first is empty, if doze_us
 * is not 0. */
int traffic_loop(uint16_t from, uint16_t to, uint16_t queue, uint16_t second, unsigned doze_us);
/* It waits for a lock, between receiving and sending, until the end. */
int traffic_hang(void);
uint64_t traffic_loop_count(void);
int64_t traffic_unloop(void); /* forwarded packets in total */

uint64_t traffic_now_ns(void);

#endif
