/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "measure/rates.h"
#include "timeline.h"
#include "trace.h"

static struct perfetto_track *child(
	struct timeline *l, const struct perfetto_track *parent, const char *name)
{
	return perfetto_track_new(&l->out,
		&(struct perfetto_place){.kind = PERFETTO_SLICES, .name = name, .parent = parent});
}

int timeline_begin(struct timeline *l, bool ids, bool fates)
{
	char name[PERFETTO_TEXT];
	const struct perfetto_place at = {.kind = PERFETTO_PROCESS,
		.name = printable(name, sizeof(name), l->name),
		.pid = l->pid};

	if (ids)
		l->passages = calloc((size_t)PASSAGE_SETS * PASSAGE_WAYS, sizeof(*l->passages));
	if (fates)
		l->events = calloc(FATES_WAIT, sizeof(*l->events));
	l->process = perfetto_track_new(&l->out, &at);
	if (!l->process || (ids && !l->passages) || (fates && !l->events))
		return -ENOMEM;
	if (fates)
		l->fates = child(l, l->process, "fates");
	return 0;
}

static void make_tracks(
	struct timeline *l, struct timeline_thread *t, uint32_t lcore, const char *name)
{
	char text[PERFETTO_TEXT];
	struct perfetto_place at = {.kind = PERFETTO_THREAD,
		.name = text,
		.pid = l->pid,
		.tid = l->trace && t->tid ? (uint32_t)trace_our_tid(l->trace, t->tid) : t->tid,
		.parent = l->process};

	/* Number 0 is the idle task's. */
	if (!at.tid)
		at.kind = PERFETTO_SLICES;
	if (t->tid || lcore != UINT32_MAX)
		thread_text(text, lcore, name, t->tid);
	else
		strcpy(text, "unknown thread");
	t->track = perfetto_track_new(&l->out, &at);
	if (!t->track)
		return;
	t->gaps = child(l, t->track, "polling gaps");
	t->busy = child(l, t->track, "busy periods");
	t->off = child(l, t->track, "without a CPU");
}

static struct timeline_thread *find_thread(struct timeline *l, uint32_t tid, uint32_t ring)
{
	for (uint32_t i = 0; i < l->thread_count; i++) {
		uint32_t at = (l->last_thread + i) % l->thread_count;
		struct timeline_thread *t = &l->threads[at];

		if (t->tid != tid || (!tid && t->ring != ring))
			continue;
		l->last_thread = at;
		return t;
	}
	return NULL;
}

bool timeline_has_thread(struct timeline *l, uint32_t tid)
{
	return find_thread(l, tid, RINGTAP_NO_INDEX) != NULL;
}

struct timeline_thread *timeline_thread(
	struct timeline *l, uint32_t tid, uint32_t ring, uint32_t lcore, const char *name)
{
	struct timeline_thread *t = find_thread(l, tid, ring);

	if (t || l->thread_count == PERFETTO_TRACKS)
		return t;
	t = rt_array_add(l->threads, l->thread_count);
	if (!t)
		return NULL;
	t->tid = tid;
	t->ring = ring;
	make_tracks(l, t, lcore, name);
	return t;
}

void timeline_end_tasks(struct timeline *l, uint64_t ns)
{
	for (size_t i = 0; i < l->cpu_count; i++) {
		if (l->cpus[i].open)
			perfetto_put(&l->out, l->cpus[i].track,
				&(struct perfetto_event){.type = PERFETTO_END, .ns = ns});
		l->cpus[i].open = false;
	}
}

void timeline_end(struct timeline *l, uint64_t ns)
{
	for (uint32_t i = 0; i < l->thread_count; i++) {
		timeline_flush(l, &l->threads[i]);
		timeline_end_burst(l, &l->threads[i]);
	}
	timeline_fates_until(l, UINT64_MAX);
	timeline_flush_fates(l);
	timeline_end_tasks(l, ns);
}

void timeline_free(struct timeline *l)
{
	for (uint32_t i = 0; i < l->thread_count; i++) {
		struct timeline_thread *t = &l->threads[i];

		perfetto_track_free(t->track);
		perfetto_track_free(t->gaps);
		perfetto_track_free(t->busy);
		perfetto_track_free(t->off);
	}
	for (int k = 0; k < TIMELINE_COUNTERS; k++) {
		for (size_t i = 0; i < l->counter_count[k]; i++)
			perfetto_track_free(l->counters[k][i].track);
		free(l->counters[k]);
	}
	for (size_t i = 0; i < l->cpu_count; i++)
		perfetto_track_free(l->cpus[i].track);
	perfetto_track_free(l->fates);
	perfetto_track_free(l->process);
	free(l->cpus);
	free(l->threads);
	free(l->passages);
	free(l->events);
	off_cpu_free(&l->off);
}
