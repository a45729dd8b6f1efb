/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's statistics of the polling threads: proc(5), /proc/self/task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ipc.h"
#include "refresh.h"

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

/* The thread that the entry is about still has the slot. */
static bool lives(const struct rt_stat_thread *p, unsigned slot)
{
	return rt_load(&rt_threads[slot].used) &&
	       rt_load(&rt_threads[slot].generation) == rt_load(&p->generation);
}

static void look_at_poll(const struct rt_stats *f, unsigned i)
{
	const struct rt_stat_own *o = &f->rows[i].own;
	struct rt_stat_thread *p = &f->threads[i];
	/* Before the poll's time is read: until then there was no later one. */
	uint64_t now = rt_tsc(), tsc = rt_load(&o->last_tsc), epoch = rt_load(&o->last_epoch);
	uint32_t where = rt_load(&o->last_where);
	bool known = rt_load(&rt_stat_mode.state) & RT_COLLECT_GAPS &&
		     rt_load(&o->gaps_generation) == rt_stat_mode.gaps_generation && lives(p, i);

	/* Pairs with the fence in read_poll(). */
	rt_store(&p->looked_tsc, 0);
	rt_fence_release();
	rt_store(&p->poll_tsc, known ? tsc : 0);
	rt_store(&p->poll_packets, rt_load(&o->last_count));
	rt_store(&p->poll_port, (uint16_t)where);
	rt_store(&p->poll_queue, (uint16_t)(where >> 16));
	/* Even is outside of hooks, right behind that poll. */
	rt_store(&p->poll_holds, rt_load(&rt_threads[i].epoch) <= epoch + 1);
	rt_store_release(&p->looked_tsc, now);
}

/* The values of a thread that polls meanwhile need not fit together: those of one that does not,
 * do. */
void rt_stats_look_at_polls(struct rt_stats *f)
{
	for (unsigned i = 0; i < f->threads_ready; i++) {
		/* Pairs with the release in introduce(). */
		if (rt_load_acquire(&f->threads[i].generation))
			look_at_poll(f, i);
	}
}

void rt_stats_refresh_threads(struct rt_stats *f, uint64_t now_ns)
{
	for (unsigned i = 0; i < f->threads_ready; i++) {
		struct rt_stat_thread *p = &f->threads[i];
		/* Pairs with the release in introduce(): tid is this owner's. */
		uint32_t generation = rt_load_acquire(&p->generation), tid = rt_load(&p->tid);
		bool alive = lives(p, i);

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
