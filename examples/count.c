/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest reader: counts the packets of one application (default: the first) by interface for
 * some seconds.
 *   cc count.c $(pkg-config --cflags --libs libringtap) -o count && ./count [seconds [file-prefix]]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ringtap/reader.h>

#define INTERFACES 64

struct tally {
	uint64_t packets, bytes, broadcasts;
};

/* Not of CLOCK_REALTIME, which may be set meanwhile. */
static time_t seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Packets are read where they lie: they are valid until ringtap_capture_release(). */
static void add(struct tally *tallies, struct ringtap_packets *it, const struct ringtap_run *run)
{
	const struct ringtap_packet *p;

	ringtap_packets_start(it, run);
	while ((p = ringtap_packet_next(it))) {
		struct tally *t = &tallies[p->interface % INTERFACES];

		t->packets++;
		t->bytes += p->length;
		t->broadcasts += p->caplen >= 6 && !memcmp(p->data, "\xff\xff\xff\xff\xff\xff", 6);
	}
	if (ringtap_packets_error(it))
		fprintf(stderr, "the application has overwritten packets\n");
}

static void print(const struct ringtap_capture *cap, const struct tally *tallies)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	struct ringtap_stats st = {.size = sizeof(st)};

	for (unsigned i = 0; !ringtap_capture_interface(cap, i, &info) && i < INTERFACES; i++)
		printf("%s: %" PRIu64 " packets, %" PRIu64 " bytes, %" PRIu64 " broadcasts\n",
			info.name, tallies[i].packets, tallies[i].bytes, tallies[i].broadcasts);
	ringtap_capture_stats(cap, &st);
	printf("%" PRIu64 " packets seen, %" PRIu64 " captured, %" PRIu64 " lost, %" PRIu64
	       " delivered\n",
		st.total.seen, st.total.captured, st.total.lost[RINGTAP_LOST_FULL], st.delivered);
}

static int count(struct ringtap_capture *cap, time_t end)
{
	struct tally tallies[INTERFACES] = {0};
	struct ringtap_packets *it;
	struct ringtap_run runs[64];
	int n;

	if (ringtap_packets_create(&it))
		return -ENOMEM;
	while ((n = ringtap_capture_next(cap, runs, 64, 100)) >= 0) {
		for (int i = 0; i < n; i++)
			add(tallies, it, &runs[i]);
		ringtap_capture_release(cap);
		if (seconds() >= end)
			ringtap_capture_stop(cap); /* and on until everything is handed out */
	}
	print(cap, tallies);
	ringtap_packets_free(it);
	return n;
}

int main(int argc, char **argv)
{
	struct ringtap_target all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	time_t end = seconds() + (argc > 1 ? atoi(argv[1]) : 3);
	struct ringtap_capture *cap;
	struct ringtap_apps *apps;
	size_t which = 0;
	int ret;

	if (ringtap_apps_find(&apps) || ringtap_capture_create(&cap, NULL))
		return fprintf(stderr, "not enough memory\n"), 1;
	while (argc > 2 && which < ringtap_apps_count(apps) &&
		strcmp(ringtap_apps_name(apps, which), argv[2]))
		which++;
	if (which == ringtap_apps_count(apps))
		return fprintf(stderr, "no such DPDK application\n"), 1;
	if (ringtap_capture_attach(cap, ringtap_apps_dir(apps, which), &all, 1, NULL))
		return fprintf(stderr, "%s\n", ringtap_capture_error(cap)), 1;
	ret = count(cap, end);
	if (ret != -EPIPE)
		fprintf(stderr, "%s\n", ringtap_capture_error(cap));
	ringtap_capture_close(cap);
	ringtap_apps_free(apps);
	return ret != -EPIPE;
}
