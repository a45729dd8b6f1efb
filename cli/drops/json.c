/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/json.h"
#include "drops.h"

static void put(json_t *j, const char *key, json_t *value)
{
	json_object_set_new(j, key, value);
}

static json_t *known(double v)
{
	return isnan(v) ? json_null() : json_count((uint64_t)(v + 0.5));
}

static json_t *ports(const struct drops *d)
{
	const struct fates_session *s = &d->view.s;
	char name[RINGTAP_NAME_LEN];
	json_t *list = json_array();

	for (uint32_t i = 0; i < ringtap_capture_interface_count(s->cap); i++) {
		struct driver_counts c = drops_driver(d, i);
		json_t *j = json_object();

		put(j, "port", json_text(fates_port(s, i, name)));
		put(j, "nic_missed", known(c.imissed));
		put(j, "no_mbuf", known(c.rx_nombuf));
		put(j, "tx_offered", known(c.offered));
		put(j, "tx_refused", known(c.unsent));
		put(j, "stopped", json_boolean(drops_port_stopped(d, i)));
		put(j, "tx_unknown", known(c.tx_unknown));
		put(j, "counters_began_again", json_boolean(c.partial));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *queues(const struct drops *d)
{
	const struct fates_session *s = &d->view.s;
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->fates->queue_count; i++) {
		const struct ringtap_fate_queue *q = ringtap_fates_queue(s->fates, i);
		json_t *j;

		if (!fates_includes(s, q->interface))
			continue;
		j = fates_queue_json(s, q);
		put(j, "offered", json_count(q->offered));
		put(j, "not_offered", json_count(q->not_offered + q->free));
		put(j, "in_pools", json_count(q->free));
		put(j, "open", json_count(q->open));
		put(j, "unknown", json_count(q->unknown));
		put(j, "inferred", json_count(q->inferred));
		put(j, "unseen", json_count(q->unseen));
		put(j, "port_stopped", json_count(q->stopped));
		json_array_append_new(list, j);
	}
	return list;
}

json_t *drops_json(void *ctx)
{
	const struct drops *d = ctx;
	json_t *j = json_object(), *packets = json_object();
	char name[RINGTAP_NAME_LEN];
	struct drops_sum sum;

	drops_add_up(d, &sum);
	fates_json(j, &d->view);
	put(j, "final", json_boolean(d->final));
	put(j, "received", json_count(sum.received));
	put(j, "offered", json_count(sum.offered));
	put(j, "not_offered", json_count(sum.not_offered));
	put(j, "open", json_count(sum.open));
	put(j, "unknown", json_count(sum.unknown));
	put(j, "unseen", json_count(sum.unseen));
	put(j, "port_stopped", json_count(sum.stopped));
	put(j, "rest_offered", json_count(d->view.s.fates->rest_offered));
	put(j, "copies_not_seen", json_boolean(drops_is_switch(d)));
	put(j, "lost", json_count(fates_lost(&d->view.s)));
	put(j, "upper_port",
		fates_upper_port(&d->view.s) == RINGTAP_NO_INDEX
			? json_null()
			: json_text(fates_port(&d->view.s, fates_upper_port(&d->view.s), name)));
	put(j, "sent_unseen", json_count(fates_sent_unseen(&d->view.s)));
	put(j, "queues_refused", json_count(fates_queues_refused(&d->view.s)));
	put(j, "pools_beyond", json_count(d->view.s.fates->pools_beyond));
	put(j, "filter", json_text(d->expression));
	put(j, "ports", ports(d));
	put(j, "queues", queues(d));
	groups_json(packets, &d->groups, &d->view.s, d->view.seconds);
	put(packets, "in_pools_at_end", json_count(d->at_end));
	put(j, "not_offered_packets", packets);
	return j;
}
