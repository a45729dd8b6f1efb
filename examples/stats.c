/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics: how busy the threads of an application (default: the first) are, and how large its
 * bursts, in one second.
 *   cc stats.c $(pkg-config --cflags --libs libringtap) -o stats && ./stats [file-prefix]
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ringtap/monitor.h>

static const char *find(const struct ringtap_apps *apps, const char *name)
{
	for (size_t i = 0; i < ringtap_apps_count(apps); i++)
		if (!name || !strcmp(ringtap_apps_name(apps, i), name))
			return ringtap_apps_dir(apps, i);
	return NULL;
}

static void print(const struct ringtap_snapshot *s)
{
	for (uint32_t i = 0; i < s->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(s, i);
		double cycles = (double)(t->busy_cycles + t->idle_cycles);

		if (t->alive && cycles > 0)
			printf("thread %s: busy %.1f %%\n", t->name,
				100 * (double)t->busy_cycles / cycles);
	}
	for (uint32_t i = 0; i < s->queue_count; i++) {
		const struct ringtap_queue_stats *q = ringtap_snapshot_queue(s, i);
		uint64_t bursts = q->polls - q->empty_polls;

		printf("%s %s queue %u: %" PRIu64 " packets, %.1f per burst\n",
			ringtap_snapshot_port(s, q->port)->name,
			q->direction == RINGTAP_RX ? "RX" : "TX", q->queue, q->packets,
			bursts ? (double)q->packets / (double)bursts : 0);
	}
}

/* Counters only grow: an interval is the difference of two snapshots. */
static int measure(struct ringtap_monitor *mon)
{
	struct ringtap_snapshot *first, *last;
	int ret = ringtap_monitor_read(mon, &first);

	if (ret)
		return ret;
	sleep(1);
	ret = ringtap_monitor_read(mon, &last);
	if (!ret) {
		ringtap_snapshot_since(last, first);
		print(last);
	}
	ringtap_snapshot_free(last);
	ringtap_snapshot_free(first);
	return ret;
}

int main(int argc, char **argv)
{
	struct ringtap_monitor_options options = {
		.size = sizeof(options), .collectors = RINGTAP_POLLS | RINGTAP_BUSY};
	struct ringtap_monitor *mon;
	struct ringtap_apps *apps;
	char err[256];
	const char *dir;
	int ret;

	if (ringtap_apps_find(&apps))
		return fprintf(stderr, "not enough memory\n"), 1;
	dir = find(apps, argc > 1 ? argv[1] : NULL);
	if (!dir)
		return fprintf(stderr, "no such DPDK application\n"), 1;
	if (ringtap_monitor_open(&mon, dir, &options, err, sizeof(err)))
		return fprintf(stderr, "%s\n", err), 1;
	ret = measure(mon);
	if (ret)
		fprintf(stderr, "cannot read the statistics: %s\n", strerror(-ret));
	ringtap_monitor_close(mon);
	ringtap_apps_free(apps);
	return ret != 0;
}
