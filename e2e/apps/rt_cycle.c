/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaches to an application, reads a little, detaches; again and again.
 * usage: rt_cycle RUNTIME_FOLDER CYCLES
 * Every third cycle closes without a stop, every fifth without having read anything.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ringtap/reader.h"

#define RUNS 32

static int complain(const char *what, int rc, const char *why)
{
	fprintf(stderr, "rt_cycle: %s: %s (%s)\n", what, strerror(-rc), why ? why : "");
	return rc;
}

/* Reads once what is available; checks that times do not decrease. */
static int read_some(struct ringtap_capture *cap, uint64_t *last_ns, uint64_t *packets)
{
	struct ringtap_run runs[RUNS];
	int n = ringtap_capture_next(cap, runs, RUNS, 1000);

	for (int i = 0; i < n; i++) {
		if (runs[i].first_ns < *last_ns || runs[i].last_ns < runs[i].first_ns)
			return complain("time steps back", -ERANGE, NULL);
		*last_ns = runs[i].last_ns;
		*packets += runs[i].packets;
	}
	ringtap_capture_release(cap);
	return n;
}

static int check_counts(struct ringtap_capture *cap, uint64_t packets)
{
	struct ringtap_stats st = {.size = sizeof(st)};
	uint64_t sum;

	ringtap_capture_stats(cap, &st);
	sum = st.total.captured + st.total.filtered;
	for (int i = 0; i < RINGTAP_LOST_MAX; i++)
		sum += st.total.lost[i];
	if (sum != st.total.seen || st.delivered != packets || st.total.captured != packets)
		return complain("the counts do not add up", -EOVERFLOW, NULL);
	return 0;
}

static int finish(struct ringtap_capture *cap, uint64_t *last_ns, uint64_t *packets)
{
	int rc = ringtap_capture_stop(cap);

	while (rc >= 0)
		rc = read_some(cap, last_ns, packets);
	if (rc != -EPIPE)
		return complain("reading to the end", rc, ringtap_capture_error(cap));
	return check_counts(cap, *packets);
}

static int cycle(const char *dir, unsigned i, uint64_t *total)
{
	struct ringtap_capture_options opts = {.size = sizeof(opts), .buffer_size = 256 << 10};
	struct ringtap_target target = {
		.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX, .snaplen = 64};
	struct ringtap_capture *cap;
	uint64_t last_ns = 0, packets = 0;
	int rc = ringtap_capture_create(&cap, NULL);

	if (rc)
		return complain("creating", rc, NULL);
	rc = ringtap_capture_attach(cap, dir, &target, 1, &opts);
	if (rc)
		complain("attaching", rc, ringtap_capture_error(cap));
	if (!rc && i % 5)
		rc = read_some(cap, &last_ns, &packets);
	if (rc >= 0 && i % 3)
		rc = finish(cap, &last_ns, &packets);
	ringtap_capture_close(cap);
	*total += packets;
	return rc < 0 ? rc : 0;
}

int main(int argc, char **argv)
{
	unsigned cycles = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	uint64_t total = 0;

	for (unsigned i = 0; i < cycles; i++) {
		if (cycle(argv[1], i, &total)) {
			fprintf(stderr, "rt_cycle: in cycle %u\n", i);
			return 1;
		}
	}
	printf("%u cycles, %" PRIu64 " packets\n", cycles, total);
	return 0;
}
