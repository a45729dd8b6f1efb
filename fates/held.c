/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the table of open packets, and counts them by place, age and group. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "held.h"

#define SNAPLEN 128

const uint64_t age_limits[AGES] = {100000, 1000000, 10000000, 100000000, NS_PER_S, 10 * NS_PER_S,
	60 * NS_PER_S, 600 * NS_PER_S, UINT64_MAX};
const char *const age_names[AGES] = {"below 100 us", "100 us to 1 ms", "1 to 10 ms", "10 to 100 ms",
	"100 ms to 1 s", "1 to 10 s", "10 to 60 s", "1 to 10 min", "10 min or more"};

unsigned age_class(uint64_t ns)
{
	unsigned i = 0;

	while (i < AGES - 1 && ns >= age_limits[i])
		i++;
	return i;
}

double held_growth(const struct held *h, const struct held_count *c)
{
	if (!h->before_ns)
		return NAN;
	return ((double)c->older - (double)c->before) * NS_PER_S /
	       (double)(h->read_ns - h->before_ns);
}

const struct held_place *held_largest(const struct held *h)
{
	const struct held_place *most = NULL;

	for (uint32_t i = 0; i < h->places.count; i++) {
		const struct held_place *g = h->places.things[i];

		if (g->count.older && (!most || g->count.older > most->count.older))
			most = g;
	}
	return most;
}

void held_note_growth(struct held *h)
{
	if (!h->before_ns || h->all.older < h->all.before)
		h->grown = 0;
	else
		h->grown += h->all.older > h->all.before;
}

bool held_grows(const struct held *h)
{
	return h->grown >= HELD_READINGS && h->all.older > fates_descriptors(&h->view.s);
}

uint64_t held_in_descriptors(const struct held *h)
{
	uint64_t most = fates_descriptors(&h->view.s);

	return most < h->all.older ? most : h->all.older;
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

static void add_to_place(struct held *h, uint32_t pool, uint32_t queue, bool older)
{
	struct held_place *g = keyed_get(&h->places, (uint64_t)pool << 32 | queue);

	if (!g) {
		h->unplaced++;
		return;
	}
	g->pool = pool;
	g->queue = queue;
	count(&g->count, older);
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
	add_to_place(h, pool, queue, older);
	h->ages[age_class(s.age_ns)]++;
	if (s.age_ns > h->oldest_ns)
		h->oldest_ns = s.age_ns;
	if (older)
		groups_add(&h->groups, &s);
}

static int begin_reading(struct held *h)
{
	begin_count(&h->all);
	for (unsigned i = 0; i < PLACES_MAX; i++) {
		begin_count(&h->queues[i]);
		begin_count(&h->pools[i]);
	}
	for (uint32_t i = 0; i < h->places.count; i++)
		begin_count(&((struct held_place *)h->places.things[i])->count);
	h->unplaced = 0;
	memset(h->ages, 0, sizeof(h->ages));
	h->oldest_ns = 0;
	h->before_ns = h->read_ns;
	h->read_ns = now_ns(CLOCK_MONOTONIC);
	return groups_clear(&h->groups);
}

/* Whether a packet is counted. */
static bool is_meant(const struct held *h, const struct ringtap_open_packet *p)
{
	const struct ringtap_fates *f = h->view.s.fates;

	if (p->free || !fates_includes(&h->view.s, p->interface))
		return false;
	return !h->pool ||
	       (p->pool < f->pool_count && !strcmp(ringtap_fates_pool(f, p->pool)->name, h->pool));
}

int held_read(struct held *h)
{
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;
	int ret = begin_reading(h);

	if (!ret)
		ret = ringtap_open_packets_create(&it, h->view.s.cap, 0);
	if (ret)
		return message_fail(
			ret, "%s: reading open packets: %s", h->view.s.command, strerror(-ret));
	while ((p = ringtap_open_packets_next(it)))
		if (is_meant(h, p))
			add(h, p);
	ringtap_open_packets_free(it);
	held_note_growth(h);
	return 0;
}

const char *held_pool(const struct held *h, uint32_t place)
{
	const struct ringtap_fates *f = h->view.s.fates;

	return place < f->pool_count ? ringtap_fates_pool(f, place)->name : NULL;
}

/* The table of open packets has all that is shown. */
static void ignore(void *ctx, const struct ringtap_packet *p)
{
	(void)ctx;
	(void)p;
}

struct held *held_new(const char *command)
{
	struct held *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->older_ns = NS_PER_S;
	h->places.size = sizeof(struct held_place);
	h->view.s.command = command;
	h->view.s.take = ignore;
	h->view.s.snaplen = SNAPLEN;
	h->view.ctx = h->view.s.ctx = h;
	if (!groups_init(&h->groups))
		return h;
	held_free(h);
	return NULL;
}

void held_free(struct held *h)
{
	if (!h)
		return;
	fates_free(&h->view.s);
	groups_free(&h->groups);
	keyed_free(&h->places);
	free(h);
}
