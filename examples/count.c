/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest reader: counts the packets of one application (default: the first) for some seconds.
 *   cc count.c $(pkg-config --cflags --libs libringtap) -o count && ./count [seconds [file-prefix]]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ringtap/reader.h>

/* Of a clock that nobody sets. */
static time_t seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

int main(int argc, char **argv)
{
	struct ringtap_want all = {.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	struct ringtap_stats st = {.size = sizeof(st)};
	time_t end = seconds() + (argc > 1 ? atoi(argv[1]) : 3);
	struct ringtap_run runs[64];
	struct ringtap_capture *cap;
	struct ringtap_apps *apps;
	unsigned long long bytes = 0;
	size_t which = 0;
	int n = 0;

	if (ringtap_apps_find(&apps) || ringtap_capture_create(&cap))
		return fprintf(stderr, "not enough memory\n"), 1;
	while (argc > 2 && which < ringtap_apps_count(apps) &&
		strcmp(ringtap_apps_name(apps, which), argv[2]))
		which++;
	if (which == ringtap_apps_count(apps))
		return fprintf(stderr, "no such DPDK application\n"), 1;
	if (ringtap_capture_attach(cap, ringtap_apps_dir(apps, which), &all, 1, NULL))
		return fprintf(stderr, "%s\n", ringtap_capture_error(cap)), 1;
	while ((n = ringtap_capture_next(cap, runs, 64, 100)) >= 0) {
		for (int i = 0; i < n; i++) /* runs[i].data holds pcapng Enhanced Packet Blocks */
			bytes += runs[i].len;
		ringtap_capture_release(cap);
		if (seconds() >= end)
			ringtap_capture_stop(cap); /* and on until everything is handed out */
	}
	ringtap_capture_stats(cap, &st);
	printf("%llu packets seen, %llu captured, %llu lost, %llu delivered, %llu bytes\n",
		(unsigned long long)st.total.seen, (unsigned long long)st.total.captured,
		(unsigned long long)(st.total.lost[RINGTAP_LOST_FULL]),
		(unsigned long long)st.delivered, bytes);
	if (n != -EPIPE)
		fprintf(stderr, "%s\n", ringtap_capture_error(cap));
	ringtap_capture_close(cap);
	ringtap_apps_free(apps);
	return 0;
}
