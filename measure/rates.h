/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts and rates between two snapshots of an application. NAN: unknown, because the collector is
 * off or the driver does not count it. */
#ifndef RINGTAP_MEASURE_RATES_H
#define RINGTAP_MEASURE_RATES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "watch.h"

/* Two snapshots of one application. Entries that from does not have count from zero. */
struct span {
	const struct ringtap_snapshot *from, *to;
	double seconds;
	double tsc_hz; /* from the first snapshot, as a time that has been shown must not go back */
	const struct watched *app; /* whose ports may be chosen; NULL: all are */
};
/* Whether a port of the later snapshot is chosen, and whether a thread polls one that is, or sends
 * by it. */
bool span_has_port(const struct span *s, uint32_t port);
bool span_has_thread(const struct span *s, uint32_t thread);

/* False if there is no interval yet. */
bool span_of(const struct watched *a, struct span *s);
/* From the beginning: counters and rates are totals. */
struct span span_total(const struct watched *a);

/* How much a counter grew; one that went back was set to zero in between. */
uint64_t grown(uint64_t later, uint64_t earlier);

/* Calls at one or several (thread, queue)s. */
struct tally {
	uint64_t calls, empty, packets;
	uint64_t bytes, byte_packets;
	uint64_t big_calls, big_packets; /* beyond the histogram */
	uint32_t max_burst;              /* largest of the entries that had calls */
	uint64_t full; /* calls with as many packets as their entry's largest burst */
	uint64_t burst[RINGTAP_BURSTS + 1];
};

/* Adds what entry i of the snapshots' queues grew by. */
void tally_add(struct tally *t, const struct span *s, uint32_t i);
/* Sums the entries of a port and a thread (RINGTAP_NO_INDEX: any) and of a direction (0: both). */
void tally_sum(
	struct tally *t, const struct span *s, uint32_t port, uint32_t thread, unsigned direction);
double tally_mean(const struct tally *t);      /* packets a call; NAN without calls */
double tally_mean_busy(const struct tally *t); /* only calls that had any */
/* The burst size at or below which a share of the calls with packets lies; calls beyond
 * the histogram count as RINGTAP_BURSTS + 1. 0 without calls. */
unsigned tally_quantile(const struct tally *t, double share);
/* Full calls as a share of all. An entry whose thread once requested larger bursts than it does now
 * has none: only the largest request is known. */
double tally_full(const struct tally *t);
/* The RX entry whose polls are full most often, of port's and thread's; those that are polled ten
 * times less than the mean do not count. Sums over queues hide a full one: a thread that polls it
 * and three idle queues in turn has full bursts in a quarter of its polls. */
void tally_fullest(struct tally *t, const struct span *s, uint32_t port, uint32_t thread);
/* Bytes of all packets; NAN if the collector was off. */
double tally_bytes(const struct tally *t);

/* Burst sizes by powers of two: 0, 1, 2…3, 4…7, … 512 and more. */
#define BURST_CLASSES 11
void tally_classes(const struct tally *t, uint64_t classes[BURST_CLASSES]);

struct thread_rates {
	double busy; /* share of the time seen, 0 … 1 */
	double seen; /* share of the interval between its first and last poll */
	double cycles_per_packet;
	double packets;   /* received a second */
	double polls;     /* a second */
	double cpu, wait; /* shares of time: running, and runnable without a CPU */
	double preempted; /* a second */
	double worst_gap_ns, worst_idle_gap_ns;
	uint64_t largest_microburst; /* packets */
};
void rates_thread(const struct span *s, uint32_t i, struct thread_rates *out);
/* Whether it ended within the span, whenever it began: an interval has the whole length. A gap that
 * lasts is in each span, with its age. */
bool rates_has_gap(const struct span *s, const struct ringtap_gap *g);
bool rates_has_microburst(const struct span *s, const struct ringtap_microburst *m);

/* From receive to send, over the interval; max since the collector is on. NAN without packets. */
struct latency_rates {
	uint64_t count;
	double mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};
void rates_latency(const struct span *s, uint32_t pair, struct latency_rates *out);
/* The same, as it is shown: percentiles, which are middles of buckets, are not above the maximum.
 */
void rates_latency_shown(const struct span *s, uint32_t pair, struct latency_rates *out);

/* The most objects at a sample between the two snapshots, of the last RINGTAP_RING_RECENT samples;
 * without any, at the last one before. NAN: the ring has never been sampled. */
double rates_ring_peak(const struct span *s, uint32_t ring);

/* Growth of an xstat between its last readings before either snapshot, and the seconds between
 * these. NAN: unknown, as it was not read twice, or has fallen. */
double rates_xstat(const struct span *s, uint32_t xstat, double *seconds);

/* The same of a statistic of a device. */
double rates_device(const struct span *s, uint32_t stat, double *seconds);

/* Busy share of what the application counts of an lcore, between its last readings before either
 * snapshot. NAN: unknown. */
double rates_lcore(const struct span *s, uint32_t lcore);

/* Counts of a driver between its last readings before either snapshot. */
struct driver_counts {
	double seconds; /* between the two readings; NAN, as all others: unknown */
	/* The driver's counters began again in between (ringtap_port_stats.epoch): packets and
	 * bytes are unknown, the others are the least that were counted, or unknown where that
	 * is 0. */
	bool partial;
	double ipackets, opackets, ibytes, obytes;
	double imissed, ierrors, rx_nombuf, oerrors;
	double errors;  /* both directions */
	double offered; /* packets passed to TX */
	/* Packets of them that were not sent: refused or lost by the driver. 0 unless there
	 * certainly are some: hooks and driver are not read at one moment. */
	double unsent;
	double tx_unknown; /* the part that may or may not have been sent */
};
void driver_counts(const struct span *s, uint32_t port, struct driver_counts *out);

/* "lcore 1 (rte-worker-1, 24772)", without an lcore "thread pmd-c01 (24772)". Printable. name "",
 * tid 0: unknown. */
#define THREAD_NAME_LEN 48
char *thread_text(char buf[THREAD_NAME_LEN], uint32_t lcore, const char *name, uint32_t tid);
char *thread_name(char buf[THREAD_NAME_LEN], const struct ringtap_thread_stats *t);
/* "lcore 1", or what the kernel calls it: the same after a restart. */
char *thread_label(char buf[THREAD_NAME_LEN], const struct ringtap_thread_stats *t);
/* Copies text that an application gave; what a terminal would not show as it is becomes '?'. */
char *printable(char *dst, size_t size, const char *text);

#endif
