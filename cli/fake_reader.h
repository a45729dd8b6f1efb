/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libringtap for unit tests: one process, no DPDK, packets made to order. It implements reader.h,
 * so the code under test is the real one up to the library's border.
 */
#ifndef RINGTAP_CLI_FAKE_READER_H
#define RINGTAP_CLI_FAKE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "ringtap/fates.h"
#include "ringtap/monitor.h"

struct fake_run {
	uint32_t app;
	uint32_t interface; /* the application's id */
	unsigned packets;
	uint32_t len; /* bytes of each packet */
};

/* Behaviour of the next capture; set up by tests. Packet k of all bears k in its first eight bytes
 * and the time FAKE_START_NS + k. */
struct fake {
	unsigned apps; /* named app0, app1, …; each has ports p0 and p1 */
	const struct fake_run *runs;
	unsigned run_count;
	unsigned late_interface; /* interfaces of app0 beyond the first appear with this run */
	int end;                 /* what follows the last run: -EPIPE by death, -EBADMSG, … */
	bool wait_for_stop;      /* after the last run there is silence until stop */
	bool renumber;
	unsigned burst;  /* N packets are received, the next N sent; 0: all are received */
	bool nic_unread; /* no driver was read */
	int attach_error, start_error;
	uint64_t queues_refused;
	int signal_at_end;    /* raised once instead of silence; 0: none */
	const uint8_t *bytes; /* content of each packet, instead of its number; NULL: none */
	const char *driver;   /* driver of p1; NULL: net_fake */
	uint16_t linktype;    /* p1's; 0: Ethernet */
	/* Fates of packets; NULL: the application has no fates. Packets of a capture are
	 * then those that were not offered, FAKE_AGE_NS after their reception. */
	const struct ringtap_fates *fates;
	const struct ringtap_open_packet *open;     /* fates->open + fates->free */
	const struct ringtap_snapshot *first, *now; /* statistics; NULL: none */
	const char *program;                        /* its name, with statistics */
	uint64_t filtered, lost_later;              /* counted on interface 0 besides */
	uint64_t cut, evicted;                      /* the same, by a limit of flows */
	uint64_t not_sampled;                       /* the same; the sample is 8 then */
	uint64_t lost[2]; /* by the full buffer of an application, on its p0 */
	uint64_t lost_tx; /* by TX taps of p1 */
	/* For each application's only ring, and for all. */
	uint64_t buffer_size, written, buffer_most_used, longest_pause_ns;
	uint64_t pause_written, pause_lost, growing_lost, growing_ns;
	const char *buffer_error; /* NULL: none */
	/* Recorded for tests. */
	unsigned attached, stops, released;
	unsigned ports[4];
	uint64_t linktypes; /* the last targets', three digits each */
};
extern struct fake fake;

#define FAKE_START_NS UINT64_C(1700000000123456789)
#define FAKE_AGE_NS   UINT64_C(5000000)

/* Length of the block that holds a packet of len bytes. */
uint32_t fake_block_len(uint32_t len);

#endif
