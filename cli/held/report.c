/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "report.h"

static void put_growth(
	struct sheet *t, unsigned column, const struct held *h, const struct held_count *c)
{
	double growth = held_growth(h, c);

	if (isnan(growth))
		sheet_put(t, column, "-");
	else
		sheet_put(t, column, "%+.0f", growth);
}

static int print_ages(const struct held *h, FILE *f)
{
	struct sheet t = {
		.title = "Open packets, by age", .heads = {"age", "packets", "%"}, .columns = 3};
	int ret = 0;

	for (unsigned i = 0; i < AGES && !ret; i++)
		if (h->ages[i])
			ret = fates_row(&t, age_names[i], h->ages[i], h->all.open);
	return sheet_end(&t, ret, f);
}

static int put_place(
	struct sheet *t, const struct held *h, const char *name, const struct held_count *c)
{
	int ret = c->open || c->before ? sheet_row(t) : 0;

	if (ret || (!c->open && !c->before))
		return ret;
	sheet_put(t, 0, "%s", name);
	sheet_put_count(t, 1, c->open);
	sheet_put_count(t, 2, c->older);
	put_growth(t, 3, h, c);
	return 0;
}

#define PLACE_TEXT   (RINGTAP_NAME_LEN + 32)
#define GROUPS_SHOWN 20

static void queue_text(const struct fates_session *s, uint32_t i, char buf[PLACE_TEXT])
{
	const struct ringtap_fate_queue *q = ringtap_fates_queue(s->fates, i);
	char port[RINGTAP_NAME_LEN];

	if (i >= s->fates->queue_count) {
		strcpy(buf, "others");
		return;
	}
	snprintf(buf, PLACE_TEXT, "%s, %u", fates_port(s, q->interface, port), q->queue);
}

static void pool_text(const struct fates_session *s, uint32_t i, char buf[PLACE_TEXT])
{
	const struct ringtap_fate_pool *p = ringtap_fates_pool(s->fates, i);
	char n[FORMAT_LEN];

	snprintf(buf, PLACE_TEXT, "%s, of %s mbufs", p->name, format_count(n, p->size));
}

struct places {
	const char *title, *head;
	const struct held_count *counts; /* PLACES_MAX */
	uint32_t count;
	void (*text)(const struct fates_session *s, uint32_t i, char buf[PLACE_TEXT]);
	const char *rest; /* name of the last of counts */
};

static int print_places(const struct held *h, const struct places *p, FILE *f)
{
	struct sheet t = {.title = p->title,
		.heads = {p->head, "open", "older", "older, a second"},
		.columns = 4};
	char name[PLACE_TEXT];
	int ret = 0;

	for (uint32_t i = 0; i < p->count && i < PLACES_MAX - 1 && !ret; i++) {
		p->text(&h->view.s, i, name);
		ret = put_place(&t, h, name, &p->counts[i]);
	}
	if (!ret)
		ret = put_place(&t, h, p->rest, &p->counts[PLACES_MAX - 1]);
	return sheet_end(&t, ret, f);
}

static int by_older(const void *a, const void *b)
{
	const struct held_place *x = *(const struct held_place *const *)a,
				*y = *(const struct held_place *const *)b;

	if (x->count.older != y->count.older)
		return x->count.older < y->count.older ? 1 : -1;
	return (x->count.open < y->count.open) - (x->count.open > y->count.open);
}

/* Pools that have packets now. */
static unsigned pools_used(const struct held *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PLACES_MAX; i++)
		n += h->pools[i].open > 0;
	return n;
}

/* Sorts the groups with packets, now or in the reading before; most packets first. Returns their
 * number. */
static uint32_t sort_groups(const struct held *h, const struct held_place *list[KEYED_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->places.count; i++) {
		const struct held_place *g = h->places.things[i];

		if (g->count.open || g->count.before)
			list[n++] = g;
	}
	qsort(list, n, sizeof(*list), by_older);
	return n;
}

/* Pools by queues. Of a single pool, the table of queues has them all. */
static int print_groups(const struct held *h, FILE *f)
{
	const struct held_place *list[KEYED_MAX];
	uint32_t n = sort_groups(h, list);
	char queue[PLACE_TEXT], name[2 * PLACE_TEXT];
	struct sheet t = {.title = "By mempool, receiving port and queue",
		.heads = {"pool, port, queue", "open", "older", "older, a second"},
		.columns = 4,
		.more = n > GROUPS_SHOWN ? n - GROUPS_SHOWN : 0};
	int ret = 0;

	if (pools_used(h) < 2)
		return 0;
	for (uint32_t i = 0; i < n && i < GROUPS_SHOWN && !ret; i++) {
		const char *pool = held_pool(h, list[i]->pool);

		queue_text(&h->view.s, list[i]->queue, queue);
		snprintf(name, sizeof(name), "%s, %s", pool ? pool : "not known yet", queue);
		ret = put_place(&t, h, name, &list[i]->count);
	}
	return sheet_end(&t, ret, f);
}

static void print_sum(const struct held *h, FILE *f)
{
	char open[FORMAT_LEN], older[FORMAT_LEN], bound[32], oldest[32];
	double growth = held_growth(h, &h->all);

	format_ns(bound, (double)h->older_ns);
	text_wrapf(f, 2,
		"%s received packets are open, %s of them for more than %s; the oldest for %s",
		format_count(open, h->all.open), format_count(older, h->all.older), bound,
		format_ns(oldest, (double)h->oldest_ns));
	if (!isnan(growth))
		fprintf(f, "Older than %s: %+.0f a second\n", bound, growth);
}

/* "41,000 of them are of mb_pool_0 and were received at p1 queue 3, +120 a second." */
static void print_largest(const struct held *h, FILE *f)
{
	const struct fates_session *s = &h->view.s;
	const struct held_place *g = held_largest(h);
	char port[RINGTAP_NAME_LEN], n[FORMAT_LEN], growth[32] = "";
	const struct ringtap_fate_queue *q;

	if (!g || g->pool >= s->fates->pool_count || g->queue >= s->fates->queue_count)
		return;
	q = ringtap_fates_queue(s->fates, g->queue);
	if (h->before_ns)
		snprintf(growth, sizeof(growth), ", %+.0f a second", held_growth(h, &g->count));
	text_wrapf(f, 2, "%s of them are of %s and were received at %s queue %u%s",
		format_count(n, g->count.older), ringtap_fates_pool(s->fates, g->pool)->name,
		fates_port(s, q->interface, port), q->queue, growth);
}

static void print_notes(const struct held *h, FILE *f)
{
	uint64_t most = held_in_descriptors(h);
	char n[FORMAT_LEN];

	fputc('\n', f);
	if (held_grows(h))
		text_wrapf(f, 0,
			"They are more than RX descriptors explain, and became more in %u readings: "
			"a queue in the application grows, or mbufs leak.",
			h->grown);
	if (most)
		text_wrapf(f, 0,
			"Up to %s of the older ones may have been freed: their mbufs may lie in RX "
			"descriptors, where they cannot be found.",
			format_count(n, most));
	fates_print_pools_unread(&h->view.s, f);
	if (!h->view.s.fates->walks)
		text_wrapf(
			f, 0, "The pools were not read yet: free mbufs are among the open ones.");
	text_wrapf(f, 0, "open: neither sent nor freed yet.");
	text_wrapf(f, 0, "Packets received before this command began are not counted.");
}

int held_text(void *ctx, FILE *f)
{
	const struct held *h = ctx;
	const struct places queues = {"By receiving port and queue", "port, queue", h->queues,
		h->view.s.fates->queue_count, queue_text, "others"};
	const struct places pools = {"By mempool", "pool", h->pools, h->view.s.fates->pool_count,
		pool_text, "not known yet"};
	char title[64], bound[32];
	int ret;

	fates_head(&h->view, f);
	print_sum(h, f);
	print_largest(h, f);
	ret = print_ages(h, f);
	if (!ret)
		ret = print_places(h, &queues, f);
	if (!ret)
		ret = print_places(h, &pools, f);
	if (!ret)
		ret = print_groups(h, f);
	snprintf(title, sizeof(title), "Open for more than %s",
		format_ns(bound, (double)h->older_ns));
	if (!ret)
		ret = groups_print(&h->groups, &h->view.s, title, 0, f);
	if (!ret)
		print_notes(h, f);
	return ret;
}
