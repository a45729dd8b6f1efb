/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a ring asks for the lines of large records before it writes them (prefetchw). In one
 * regime of the memory that costs 30 % more, in another one 12 % less, and a machine changes from
 * one to the other (docs/performance.md). So each ring tries both ways in turn once a second, with
 * the TSC before and after a burst, and goes on with the cheaper one.
 */
#ifndef RINGTAP_PROBE_CAPTURE_OWN_TRIAL_H
#define RINGTAP_PROBE_CAPTURE_OWN_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of struct rt_ring.own_ahead. A ring with none of the first two makes no trial. */
#define RT_OWN_SMALL 1u /* asks for lines of small records */
#define RT_OWN_LARGE 2u /* and of large ones */
#define RT_OWN_TRIAL 4u /* a trial runs */

#define RT_OWN_LARGE_MIN 512u /* bytes captured of the burst's first packet */

#define RT_OWN_SAMPLES 32u /* bursts of each way */

struct rt_ring;

/* Used by the ring's thread only. A block is some bursts of one way; the lines of its first ones
 * were asked for, or not, by those before. */
struct rt_own_trial {
	uint64_t next_ns;                 /* the next trial is not before this time of a burst */
	uint64_t block;                   /* head where the block began */
	uint8_t was;                      /* the ring's own_ahead before the trial */
	uint8_t way;                      /* the way of this block; 1: asks */
	uint8_t block_count;              /* samples of this block */
	uint8_t count[2];                 /* samples of each way */
	uint32_t cost[2][RT_OWN_SAMPLES]; /* cycles for 256 bytes, by way */
};

/* Begins a trial if one is due. From time to time, by the ring's thread. */
void rt_own_due(struct rt_ring *r);

/* Before and after a burst of large packets during a trial. start and head are those of
 * rt_own_start() and of the ring before the burst. */
uint64_t rt_own_start(struct rt_ring *r);
void rt_own_stop(struct rt_ring *r, uint64_t start, uint64_t head);

/* The burst from head to end has taken that many cycles. True: the trial has ended, and *asks is
 * the way to go on. */
bool rt_own_note(struct rt_own_trial *t, uint64_t head, uint64_t end, uint64_t cycles, bool *asks);

#endif
