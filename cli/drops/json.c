/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/json.h"
#include "drops.h"

static json_t *known(double v)
{
	return isnan(v) ? json_null() : json_count((uint64_t)(v + 0.5));
}

static json_t *ports(const struct drops *d)
{
	const struct fates_session *s = &d->view.s;
	json_t *list = json_array();

	for (uint32_t i = 0; i < ringtap_capture_interface_count(s->cap); i++) {
		struct driver_counts c = drops_driver(d, i);
		json_t *j = fates_port_json(s, i);

		json_put(j, "missed", known(c.imissed));
		json_put(j, "no_mbuf", known(c.rx_nombuf));
		json_put(j, "offered", known(c.offered));
		json_put(j, "refused", known(c.unsent));
		json_put(j, "stopped", json_boolean(drops_port_stopped(d, i)));
		json_put(j, "tx_unknown", known(c.tx_unknown));
		json_put(j, "counters_began_again", json_boolean(c.partial));
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
		json_put(j, "offered", json_count(q->offered));
		json_put(j, "not_offered", json_count(q->not_offered + q->free));
		json_put(j, "in_pools", json_count(q->free));
		json_put(j, "open", json_count(q->open));
		json_put(j, "unknown", json_count(q->unknown));
		json_put(j, "likely_offered", json_count(q->inferred));
		json_put(j, "unseen", json_count(q->unseen));
		json_put(j, "port_stopped", json_count(q->stopped));
		json_array_append_new(list, j);
	}
	return list;
}

json_t *drops_json(void *ctx)
{
	const struct drops *d = ctx;
	json_t *j = fates_json(&d->view), *packets = json_object();
	struct drops_sum sum;

	drops_add_up(d, &sum);
	json_put(j, "missed", known(sum.missed));
	json_put(j, "no_mbuf", known(sum.no_mbuf));
	json_put(j, "refused", known(sum.refused));
	json_put(j, "received", json_count(sum.received));
	json_put(j, "offered", json_count(sum.offered));
	json_put(j, "not_offered", json_count(sum.not_offered));
	json_put(j, "open", json_count(sum.open));
	json_put(j, "unknown", json_count(sum.unknown));
	json_put(j, "unseen", json_count(sum.unseen));
	json_put(j, "port_stopped", json_count(sum.stopped));
	json_put(j, "rest_offered", json_count(d->view.s.fates->rest_offered));
	json_put(j, "copies_not_seen", json_boolean(drops_is_switch(d)));
	json_put(j, "lost", json_count(fates_lost(&d->view.s)));
	json_put(j, "upper_port", fates_port_json(&d->view.s, fates_upper_port(&d->view.s)));
	json_put(j, "sent_unseen", json_count(fates_sent_unseen(&d->view.s)));
	json_put(j, "queues_refused", json_count(fates_queues_refused(&d->view.s)));
	json_put(j, "pools_beyond", json_count(d->view.s.fates->pools_beyond));
	json_put(j, "ports", ports(d));
	json_put(j, "queues", queues(d));
	groups_json(packets, &d->groups, &d->view.s, d->view.seconds);
	json_put(packets, "in_pools_at_end", json_count(d->at_end));
	json_put(j, "not_offered_packets", packets);
	json_put(j, "counted_by_application", counted_json(&d->counted, drops_fates(d, &sum)));
	j = json_document("drops", j);
	json_put(j, "final", json_boolean(d->final));
	json_put(j, "filter", json_text(d->expression));
	return j;
}
