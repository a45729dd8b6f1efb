/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/json.h"
#include "report.h"

static void put_counts(json_t *j, const struct held *h, const struct held_count *c)
{
	double growth = held_growth(h, c);

	json_put(j, "open", json_count(c->open));
	json_put(j, "older", json_count(c->older));
	json_put(j, "older_per_second", json_number(growth));
}

static json_t *ages(const struct held *h)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < AGES; i++) {
		json_t *j = json_object();

		json_put(j, "from_ns", json_count(i ? age_limits[i - 1] : 0));
		json_put(j, "to_ns", i < AGES - 1 ? json_count(age_limits[i]) : json_null());
		json_put(j, "packets", json_count(h->ages[i]));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *queues(const struct held *h)
{
	const struct fates_session *s = &h->view.s;
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->fates->queue_count && i < PLACES_MAX - 1; i++) {
		const struct ringtap_fate_queue *q = ringtap_fates_queue(s->fates, i);
		json_t *j;

		if (!fates_includes(s, q->interface))
			continue;
		j = fates_queue_json(s, q);
		put_counts(j, h, &h->queues[i]);
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *pools(const struct held *h)
{
	const struct fates_session *s = &h->view.s;
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->fates->pool_count && i < PLACES_MAX - 1; i++) {
		const struct ringtap_fate_pool *p = ringtap_fates_pool(s->fates, i);
		json_t *j = json_object();

		json_put(j, "name", json_text(p->name));
		json_put(j, "size", json_count(p->size));
		json_put(j, "read", json_boolean(p->walked));
		json_put(j, "free_packets", json_count(p->free));
		put_counts(j, h, &h->pools[i]);
		json_array_append_new(list, j);
	}
	return list;
}

/* Pools by queues. */
static json_t *places(const struct held *h)
{
	const struct fates_session *s = &h->view.s;
	json_t *list = json_array();

	for (uint32_t i = 0; i < h->places.count; i++) {
		const struct held_place *g = h->places.things[i];
		const struct ringtap_fate_queue *q =
			g->queue < s->fates->queue_count ? ringtap_fates_queue(s->fates, g->queue)
							 : NULL;
		json_t *j;

		if (!g->count.open && !g->count.before)
			continue;
		j = json_object();
		json_put(j, "pool", json_text(held_pool(h, g->pool)));
		json_put(j, "port", q ? fates_port_json(s, q->interface) : json_null());
		json_put(j, "queue", q ? json_count(q->queue) : json_null());
		put_counts(j, h, &g->count);
		json_array_append_new(list, j);
	}
	return list;
}

json_t *held_json(void *ctx)
{
	const struct held *h = ctx;
	json_t *j = fates_json(&h->view), *packets = json_object();

	put_counts(j, h, &h->all);
	json_put(j, "oldest_ns", json_count(h->oldest_ns));
	json_put(j, "maybe_in_descriptors", json_count(held_in_descriptors(h)));
	json_put(j, "grows", json_boolean(held_grows(h)));
	json_put(j, "readings_grown", json_count(h->grown));
	json_put(j, "pool_walks", json_count(h->view.s.fates->walks));
	json_put(j, "ages", ages(h));
	json_put(j, "queues", queues(h));
	json_put(j, "pools", pools(h));
	json_put(j, "places", places(h));
	json_put(j, "unplaced", json_count(h->unplaced));
	json_put(j, "pools_beyond", json_count(h->view.s.fates->pools_beyond));
	groups_json(packets, &h->groups, &h->view.s, 0);
	json_put(j, "older_packets", packets);
	j = json_document("held", j);
	json_put(j, "older_than_ns", json_count(h->older_ns));
	return j;
}
