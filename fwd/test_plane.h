/* SPDX-License-Identifier: BSD-3-Clause */
/* A role on a plane that is a queue in memory. The TSC counts so slowly that no time passes within
 * a test: run.hz is HZ ticks a second. */
#ifndef RINGTAP_FWD_TEST_PLANE_H
#define RINGTAP_FWD_TEST_PLANE_H

#include "role.h"

#define HZ   UINT64_C(10000000000000)
#define POOL 256

extern struct fwd_config config;
extern struct link from, to;
extern struct role r;

/* The frames to receive next, those that were sent (they are not freed), and how many the port
 * accepts: of all calls, and of each one. */
extern struct rte_mbuf *incoming[POOL], *outgoing[POOL];
extern unsigned in_first, in_end, out_end, accepts, accepts_once, tx_calls, rx_calls;
extern unsigned rejects; /* packets that the kernel refuses for good */

/* Before and after each test. */
int setup(void **state);
int teardown(void **state);

unsigned free_count(void);
/* Takes n buffers; 0 if there are fewer. */
unsigned take_buffers(struct rte_mbuf **m, unsigned n);
/* n frames for the role to receive, with sequence numbers from first on. */
void receives(unsigned first, unsigned n, uint8_t stream);
const uint8_t *sent_frame(unsigned i);
uint64_t sent_number(unsigned i);
/* The role polls n times. */
void polls(unsigned n);

#endif
