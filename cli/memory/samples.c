/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers the samples of a measurement; each run of packets once. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "measure/pools.h"
#include "report.h"

static bool reserve(struct memory_samples *s, size_t more)
{
	s->full |= s->count + more > MEMORY_SAMPLES_MAX;
	s->failed |= !s->full && rt_array_room(s->list, s->room, s->count + more);
	return !s->full && !s->failed;
}

static void take_run(struct memory_samples *s, const struct ringtap_snapshot *f,
	const struct ringtap_sample_run *st)
{
	uint64_t ticks = 0;

	if (!reserve(s, st->count))
		return;
	for (uint64_t i = 0; i < st->count; i++) {
		const struct ringtap_sample *a = ringtap_sample_run_at(st, i);

		if (i)
			ticks += (uint32_t)(a->tsc - ringtap_sample_run_at(st, i - 1)->tsc);
		if (!one_app_includes(s->app, f, a->port))
			continue;
		s->list[s->count++] = (struct memory_sample){.address = a->address,
			.iova = a->iova,
			.ns = st->start_ns + (uint64_t)((double)ticks * 1e9 / (double)f->tsc_hz),
			.run = s->runs,
			.thread = st->thread,
			.port = a->port,
			.pool = pool_at(f, a->address),
			.queue = a->queue};
	}
	s->runs++;
}

/* Remembers of each thread which run was the last. */
static uint64_t *last_of(
	struct memory_samples *s, const struct ringtap_snapshot *f, uint32_t thread)
{
	if (rt_array_extend(s->last, s->last_count, f->thread_count)) {
		s->failed = true;
		return NULL;
	}
	return &s->last[thread];
}

uint64_t memory_samples_take(struct memory_samples *s, const struct ringtap_snapshot *first,
	const struct ringtap_snapshot *now)
{
	bool begins = !s->last;

	/* Runs of before the measurement are another monitor's. */
	for (uint32_t i = 0; begins && i < first->sample_run_count && !s->failed; i++) {
		const struct ringtap_sample_run *r = ringtap_snapshot_sample_run(first, i);
		uint64_t *last = last_of(s, now, r->thread);

		if (last && r->number > *last)
			*last = r->number;
	}
	for (uint32_t i = 0; i < now->sample_run_count && !s->full && !s->failed; i++) {
		const struct ringtap_sample_run *r = ringtap_snapshot_sample_run(now, i);
		uint64_t *last = last_of(s, now, r->thread);

		if (!last || r->number <= *last)
			continue;
		take_run(s, now, r);
		*last = r->number;
	}
	/* Whoever waits for more would do so for ever. */
	return s->full || s->failed ? UINT64_MAX : s->count;
}

void memory_samples_free(struct memory_samples *s)
{
	free(s->list);
	free(s->last);
}

/* Names that a CSV file takes as they are. */
static const char *plain(const char *name, char out[RINGTAP_NAME_LEN])
{
	snprintf(out, RINGTAP_NAME_LEN, "%s", name);
	for (char *p = out; *p; p++)
		if (*p == ',' || *p == '"')
			*p = '_';
	return out;
}

int memory_samples_write(const struct memory_samples *s, const struct ringtap_snapshot *f, FILE *to)
{
	char port[RINGTAP_NAME_LEN], pool[RINGTAP_NAME_LEN];

	fputs("run,thread,time_ns,port,queue,pool,address,iova\n", to);
	for (size_t i = 0; i < s->count; i++) {
		const struct memory_sample *a = &s->list[i];

		fprintf(to,
			"%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%s,%u,%s,0x%" PRIx64 ",0x%" PRIx64
			"\n",
			a->run, ringtap_snapshot_thread(f, a->thread)->slot, a->ns,
			plain(memory_port_name(f, a->port), port), a->queue,
			plain(memory_pool_name(f, a->pool), pool), a->address, a->iova);
	}
	return fflush(to) || ferror(to) ? -errno : 0;
}
