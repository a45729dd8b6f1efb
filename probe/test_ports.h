/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of the statistics: ports that lead back to themselves, and a monitor of
 * this process without a socket. */
#ifndef RINGTAP_PROBE_TEST_PORTS_H
#define RINGTAP_PROBE_TEST_PORTS_H

#include <rte_mbuf.h>

#include "probe/monitor/stats.h"

/* A started net_ring port with one queue each way, its TX leading to its RX. */
uint16_t test_port_make(const char *name);
void test_port_remove(uint16_t port);

/* Sends new packets of 60 bytes. */
void test_port_send(uint16_t port, unsigned n);
/* Receives; the caller frees what comes. */
unsigned test_port_receive(uint16_t port, struct rte_mbuf **pkts, unsigned max);
/* Receives packets and drops them. */
unsigned test_port_poll(uint16_t port, unsigned max);
/* Forwards one burst from RX to TX and drops what TX refuses. */
void test_port_forward(uint16_t port);
/* Callbacks of queue 0 that have a user. */
unsigned test_port_callbacks(uint16_t port);

/* Before the first test. */
void test_stats_start(void);
const struct rt_clock_line *test_clock(void);
/* Switches collectors of one monitor, which must be static: a test that fails leaves it. */
void test_monitor(struct rt_monitor *m, uint32_t collectors, uint32_t every);
/* Detaches it; if it was the last, all memory is given back. */
void test_monitor_end(struct rt_monitor *m);
/* Detaches all of them; after every test. */
void test_monitors_drop(void);
/* The control thread's work some time later: everything is due. */
void test_stats_tick(void);

/* The block of queue 0 and this thread's; fails the test if there is none. */
const struct rt_stat_hook *test_block(uint16_t port, enum rt_direction dir);
/* The entry of this thread. */
const struct rt_stat_thread *test_thread(void);
/* Entry of a port in the table; fails the test if there is none. */
uint32_t test_port_index(uint16_t port);
uint64_t test_sum(const uint64_t *v, unsigned n);
/* Spins that number of cycles. */
void test_spin(uint64_t cycles);

#endif
