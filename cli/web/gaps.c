/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaps.h"

#define SEARCHED 256 /* newest ones: a snapshot has those of about 16 seconds again */

uint64_t gaps_first(const struct gaps *g)
{
	return g->count > GAPS_KEPT ? g->count - GAPS_KEPT : 0;
}

const struct polling_gap *gaps_at(const struct gaps *g, uint64_t i)
{
	return &g->ring[i % GAPS_KEPT];
}

/* Whether it is there, and does not last. */
static bool is_known(const struct gaps *g, const char *thread, const struct ringtap_gap *gap)
{
	for (uint64_t n = 0; n < SEARCHED && n < g->count; n++) {
		const struct polling_gap *p = gaps_at(g, g->count - 1 - n);

		if (p->start_ns == gap->start_ns && p->ns >= gap->ns && !strcmp(p->thread, thread))
			return true;
	}
	return false;
}

static void describe(
	char *text, size_t size, const struct ringtap_snapshot *f, const struct ringtap_gap *gap)
{
	*text = '\0';
	if (gap->port < f->port_count)
		snprintf(text, size, "after a poll of %s, queue %u: %u packets",
			ringtap_snapshot_port(f, gap->port)->name, gap->queue, gap->packets);
}

static void add(struct gaps *g, const struct history *h, const struct ringtap_snapshot *f,
	const char *thread, const struct ringtap_gap *gap)
{
	struct polling_gap *p;

	if (gap->start_ns < h->origin_ns || is_known(g, thread, gap))
		return;
	if (!g->ring)
		g->ring = calloc(GAPS_KEPT, sizeof(*g->ring));
	if (!g->ring)
		return;
	p = &g->ring[g->count++ % GAPS_KEPT];
	*p = (struct polling_gap){.step = h->steps - 1,
		.start_ns = gap->start_ns,
		.ns = gap->ns,
		.idle = !gap->packets};
	snprintf(p->thread, sizeof(p->thread), "%s", thread);
	describe(p->text, sizeof(p->text), f, gap);
}

void gaps_add(struct gaps *g, const struct history *h, const struct ringtap_snapshot *f)
{
	for (uint32_t i = 0; i < f->thread_count; i++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(f, i);
		char name[THREAD_NAME_LEN];

		/* As thread_of() names it. */
		if (t->lcore == UINT32_MAX)
			thread_text(name, t->lcore, t->name, t->tid);
		else
			thread_label(name, t);
		for (uint32_t k = 0; k < t->gap_count; k++)
			add(g, h, f, name, ringtap_thread_gap(t, k));
	}
}

void gaps_free(struct gaps *g)
{
	free(g->ring);
	*g = (struct gaps){0};
}
