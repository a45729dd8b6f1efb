/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's statistics of the polling threads: proc(5), /proc/self/task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ipc.h"
#include "stats.h"

/* The beginning of the file. False: the thread does not exist any more. */
static bool slurp(uint32_t tid, const char *file, char *buf, size_t size)
{
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%u/%s", tid, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(buf, 1, size - 1, f);
	fclose(f);
	buf[n] = 0;
	return n > 0;
}

static void read_name(struct rt_stat_thread *p, uint32_t tid)
{
	char buf[32];

	if (!slurp(tid, "comm", buf, sizeof(buf)))
		return;
	buf[strcspn(buf, "\n")] = 0;
	rt_str_set(p->name, sizeof(p->name), buf);
}

/* Needs CONFIG_SCHED_INFO; every distribution has it. */
static void read_times(struct rt_stat_thread *p, uint32_t tid)
{
	unsigned long long cpu, wait;
	char buf[128];

	if (!slurp(tid, "schedstat", buf, sizeof(buf)) ||
		sscanf(buf, "%llu %llu", &cpu, &wait) != 2)
		return;
	rt_store(&p->cpu_ns, cpu);
	rt_store(&p->wait_ns, wait);
}

static void read_preempted(struct rt_stat_thread *p, uint32_t tid)
{
	static const char label[] = "nonvoluntary_ctxt_switches:";
	char buf[4096], *at;

	if (!slurp(tid, "status", buf, sizeof(buf)))
		return;
	at = strstr(buf, label);
	if (at)
		rt_store(&p->preempted, strtoull(at + sizeof(label) - 1, NULL, 10));
}

/* Field 39 of stat; field 2, the name, may contain anything and is in parentheses. */
static void read_cpu(struct rt_stat_thread *p, uint32_t tid)
{
	char buf[1024], *at;

	if (!slurp(tid, "stat", buf, sizeof(buf)))
		return;
	at = strrchr(buf, ')');
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	if (at)
		rt_store(&p->cpu, (uint32_t)strtoul(at + 1, NULL, 10));
}

void rt_stats_refresh_threads(struct rt_stats *f, uint64_t now_ns)
{
	for (unsigned i = 0; i < f->threads_ready; i++) {
		struct rt_stat_thread *p = &f->threads[i];
		/* Pairs with the release in introduce(): tid is this owner's. */
		uint32_t generation = rt_load_acquire(&p->generation), tid = rt_load(&p->tid);
		bool alive = rt_load(&rt_threads[i].used) &&
			     rt_load(&rt_threads[i].generation) == generation;

		if (!generation)
			continue;
		rt_store(&p->alive, alive);
		if (!alive || !tid)
			continue;
		read_name(p, tid);
		read_times(p, tid);
		read_preempted(p, tid);
		read_cpu(p, tid);
		rt_store_release(&p->read_ns, now_ns);
	}
}
