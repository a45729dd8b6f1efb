/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/commands.h"
#include "held.h"

#define SNAPLEN 128

enum { OPT_OLDER = FATES_OWN };

static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to show"},
	FATES_OPTION_ATTACH,
	{OPT_OLDER, OPTION_TEXT, 0, "older", "SECONDS", NULL, 0, 0,
		"Show packets that were received longer ago than this (default 1)"},
	FATES_OPTIONS_WHEN,
	FATES_OPTION_JSON,
};

/* The table of open packets has all that is shown. */
static void ignore(void *ctx, const struct ringtap_packet *p)
{
	(void)ctx;
	(void)p;
}

static void begin_count(struct held_count *c)
{
	*c = (struct held_count){.before = c->older};
}

static void count(struct held_count *c, bool older)
{
	c->open++;
	c->older += older;
}

static uint32_t queue_of(const struct held *h, uint32_t interface, uint32_t queue)
{
	const struct ringtap_fates *f = h->view.s.fates;

	for (uint32_t i = 0; i < f->queue_count && i < PLACES_MAX; i++) {
		const struct ringtap_fate_queue *q = ringtap_fates_queue(f, i);

		if (q->interface == interface && q->queue == queue)
			return i;
	}
	return PLACES_MAX - 1;
}

static void add_to_group(struct held *h, uint32_t pool, uint32_t queue)
{
	struct held_group *g = keyed_get(&h->groups, (uint64_t)pool << 32 | queue);

	if (!g)
		return;
	g->pool = pool;
	g->queue = queue;
	g->older++;
}

static void add(struct held *h, const struct ringtap_open_packet *p)
{
	const struct sample s = sample_of_open(p, h->view.s.fates->taken_ns);
	uint32_t queue = queue_of(h, p->interface, p->queue);
	uint32_t pool = p->pool < PLACES_MAX - 1 ? p->pool : PLACES_MAX - 1;
	bool older = s.age_ns >= h->older_ns;

	count(&h->all, older);
	count(&h->queues[queue], older);
	count(&h->pools[pool], older);
	h->ages[age_class(s.age_ns)]++;
	if (s.age_ns > h->oldest_ns)
		h->oldest_ns = s.age_ns;
	if (!older)
		return;
	kinds_add(&h->kinds, &s);
	add_to_group(h, pool, queue);
}

static int begin_reading(struct held *h)
{
	begin_count(&h->all);
	for (unsigned i = 0; i < PLACES_MAX; i++) {
		begin_count(&h->queues[i]);
		begin_count(&h->pools[i]);
	}
	for (uint32_t i = 0; i < h->groups.count; i++) {
		struct held_group *g = h->groups.things[i];

		g->before = g->older;
		g->older = 0;
	}
	memset(h->ages, 0, sizeof(h->ages));
	h->oldest_ns = 0;
	h->before_ns = h->read_ns;
	h->read_ns = now_ns(CLOCK_MONOTONIC);
	return kinds_clear(&h->kinds);
}

static int reading(void *ctx, bool final)
{
	struct held *h = ctx;
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;
	int ret;

	/* Growth over a moment means nothing: the last reading stays. */
	if (final && h->before_ns && now_ns(CLOCK_MONOTONIC) - h->read_ns < h->view.interval_ns / 2)
		return 0;
	ret = begin_reading(h);
	if (!ret)
		ret = ringtap_open_packets_create(&it, h->view.s.cap, 0);
	if (ret) {
		message_print("held: reading open packets: %s", strerror(-ret));
		return ret;
	}
	while ((p = ringtap_open_packets_next(it)))
		if (!p->free && fates_includes(&h->view.s, p->interface))
			add(h, p);
	ringtap_open_packets_free(it);
	held_note_growth(h);
	return 0;
}

static int set(void *ctx, int id, const struct option_value *v)
{
	struct held *h = ctx;

	if (id != OPT_OLDER)
		return fates_set(ctx, id, v);
	if (!parse_seconds(v->text, &h->older_ns))
		return 0;
	message_print("held: --older %s: give a time, such as 500ms, 10 or 5min", v->text);
	return -EINVAL;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct held *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return STATUS_FAILED;
	h->older_ns = NS_PER_S;
	h->groups.size = sizeof(struct held_group);
	h->view = (struct fates_view){
		.s = {.command = "held", .take = ignore, .ctx = h, .snaplen = SNAPLEN},
		.reading = reading,
		.text = held_text,
		.document = held_json,
		.ctx = h};
	ret = options_parse(self, argc, argv, h);
	if (ret <= 0) {
		free(h);
		return ret ? STATUS_USAGE : STATUS_OK;
	}
	/* Before that, nothing can be older; a second reading shows growth. */
	h->view.first_ns = h->older_ns + h->older_ns / 8;
	ret = kinds_init(&h->kinds) ? STATUS_FAILED : fates_run(&h->view);
	fates_free(&h->view.s);
	kinds_free(&h->kinds);
	keyed_free(&h->groups);
	free(h);
	return ret;
}

const struct command cmd_held = {
	.name = "held",
	.summary = "show received packets that an application holds",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]",
	.listed = LIST_APPS,
	.operand = fates_operand,
	.set = set,
	.run = run,
};
