/* SPDX-License-Identifier: BSD-3-Clause */
/* The thresholds of ringtap doctor, with reasons. */
#ifndef RINGTAP_JUDGE_LIMITS_H
#define RINGTAP_JUDGE_LIMITS_H

/* ---- mempools */
/* Share of the readings. Levels are read twice a second: one bad reading in ten is not an accident.
 */
#define LIMIT_POOL_EMPTY 0.1
/* Mbufs, two bursts: threads have one of each in their hands, or not, when a pool is read. */
#define LIMIT_GROWTH 64
/* Packets a poll, where no thread polls: what nearly all applications request. */
#define LIMIT_BURST 32

/* ---- rings */
/* Share of the samples, of which there are 20 a second: as for mempools. */
#define LIMIT_RING_FULL    0.1
#define LIMIT_RING_SAMPLES 20

/* ---- packets lost */
/* A few are lost whenever a link comes up or a measurement begins. */
#define LIMIT_LOST_PACKETS 10
#define LIMIT_LOST_SHARE   1e-5
/* Unsent packets are often offered again: more than noise before it is called a fault. */
#define LIMIT_UNSENT_SHARE 1e-3

/* ---- threads */
/* A tenth of its time left lets a thread catch up after a burst of traffic. */
#define LIMIT_BUSY 0.9
/* A full burst means that at least as many packets were waiting: if that is the rule, not the
 * exception, there is a backlog. */
#define LIMIT_FULL 0.5
/* Nearly always full: it takes what it can. The busy share is less certain: polls of idle queues in
 * between are idle time. */
#define LIMIT_AT_FULL 0.9
/* 1,024 descriptors last 0.1 ms at 10 Mpps: a thread kept from running for one hundredth of the
 * time, in whatever pieces a scheduler gives (milliseconds), loses packets at such rates. Timer
 * ticks and stray kernel threads take ten times less on a CPU that is otherwise left alone. */
#define LIMIT_WAIT 0.01
/* A thread that sleeps most of its time does not poll all the time, nor means to: how long it waits
 * for a CPU when it wakes is its own affair. */
#define LIMIT_ASLEEP 0.5
/* A thread that has not polled for so long has stopped: queues of any length are full by then. */
#define LIMIT_HUNG_NS 1000000000u
/* Packets were late by as much, even where nothing was lost. Threads that serve more than their
 * ports take some milliseconds for that. */
#define LIMIT_STALL_NS 100000000u
/* Gaps count only where the thread was runnable all the time. The kernel's counts may lag by some
 * ticks in half a second. */
#define LIMIT_NAPS    0.05
#define LIMIT_RUNNING 0.99
/* Gaps without work: an interrupt takes some microseconds, and is a thousand times longer than an
 * empty poll (20 … 100 ns). What is longer than both is not polling. */
#define LIMIT_GAP_NS    200e3
#define LIMIT_GAP_TIMES 1000
#define LIMIT_GAP_SHARE 0.005
/* The cost of a burst besides its packets (call, doorbell, cache misses of rings) is about what
 * eight packets of simple forwarding cost: with smaller ones it is more than half of the work. A
 * thread that has time left loses nothing by it: bursts grow with the load by themselves. */
#define LIMIT_SMALL 8

/* ---- queues */
/* Largest share of one queue against an equal one: 90:10 of two queues, 45 % of four. Few flows
 * alone make less, if there are more than a handful of them. */
#define LIMIT_UNEVEN         1.8
#define LIMIT_UNEVEN_PACKETS 10000
/* With less to do the most loaded thread has no trouble. */
#define LIMIT_UNEVEN_BUSY 0.5

/* ---- placement */
/* A second: an isolated CPU with nohz_full has one. */
#define LIMIT_TICKS 10
/* A second, of devices: more than what happens now and then. */
#define LIMIT_INTERRUPTS 100
/* Share of the time: what the kernel's own threads need is less. */
#define LIMIT_SIBLING 0.1
/* A second: memory that is used for the first time, now and then, is less. */
#define LIMIT_FAULTS 10
/* Share of huge pages: DPDK keeps some at each node for its own tables. */
#define LIMIT_FAR_SHARE 0.1

/* ---- memory */
/* Share of packets whose buffer's page is not in a translation cache of 64 entries: half of them
 * wait for a page walk. Threads with time left are not slowed by it. */
#define LIMIT_SCATTERED         0.5
#define LIMIT_SCATTERED_ENTRIES 64
#define LIMIT_SCATTERED_SAMPLES 1000
#define LIMIT_SCATTERED_BUSY    0.2

/* ---- idle: packets between neighbours, such as ARP and LLDP */
#define LIMIT_IDLE_PPS 10

#endif
