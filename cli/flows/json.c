/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "fates/tables.h"
#include "flows.h"
#include "target/counts.h"
#include "flows/view.h"
#include "measure/kernel.h"

static const char *choice(const char *choices, unsigned i, char *buf, size_t size)
{
	for (; i; i--)
		choices = strchr(choices, '|') + 1;
	snprintf(buf, size, "%.*s", (int)strcspn(choices, "|"), choices);
	return buf;
}

static void put_estimate(json_t *j, const char *key, struct estimate e)
{
	json_t *v = json_object();

	json_put(v, "value", json_number(e.value));
	json_put(v, "bound", json_number(e.bound));
	json_put(j, key, v);
}

static json_t *place(const struct ledger_place *p, const struct fates_session *s)
{
	json_t *j;

	if (!p->interface)
		return json_null();
	j = json_object();
	json_put(j, "port", fates_port_json(s, p->interface - 1));
	json_put(j, "queue", json_count(p->queue));
	return j;
}

static json_t *thread(
	const struct ledger *t, const struct flow_key *k, const struct fates_session *s)
{
	struct ledger_thread thread;
	char name[16];

	if (!ledger_thread(t, k, &thread))
		return json_null();
	kernel_thread_name(name, (pid_t)s->info.host_pid, thread.tid);
	return json_thread(thread.lcore, name, thread.tid);
}

/* The parts of a 5-tuple; other entries have their names only. */
static void put_key(
	json_t *j, const struct ledger *t, const struct flow_key *k, const struct fates_session *s)
{
	bool tuple = (t->view == LEDGER_5_TUPLE || t->view == LEDGER_INNER) && k->flags;
	char src[ADDRESS_TEXT], dst[ADDRESS_TEXT], protocol[16];
	bool ports = tuple && k->flags & HAS_PORTS;
	uint32_t vni;

	json_put(j, "source", tuple ? json_text(flow_address(k, k->src, src)) : json_null());
	json_put(j, "destination", tuple ? json_text(flow_address(k, k->dst, dst)) : json_null());
	json_put(j, "source_port", ports ? json_count(k->src_port) : json_null());
	json_put(j, "destination_port", ports ? json_count(k->dst_port) : json_null());
	json_put(j, "protocol", tuple ? json_text(flow_protocol(k, protocol)) : json_null());
	json_put(j, "vlan", tuple && k->vlan != FLOW_NO_VLAN ? json_count(k->vlan) : json_null());
	json_put(j, "vni", ledger_vni(t, k, &vni) ? json_count(vni) : json_null());
	json_put(j, "thread", thread(t, k, s));
}

static json_t *latency(const struct flows_command *c, const struct ledger_flow *f)
{
	const struct ledger_latency *l = ledger_latency(f);
	json_t *j;

	if (!c->ledger.ids || !l->count)
		return json_null();
	j = json_object();
	json_put(j, "count", json_count(l->count));
	put_estimate(j, "p50_ns", ledger_quantile_of(f, c->request.sample, 0.5));
	put_estimate(j, "p99_ns", ledger_quantile_of(f, c->request.sample, 0.99));
	json_put(j, "max_ns", c->request.sample > 1 ? json_null() : json_count(l->max));
	return j;
}

/* Frees text. */
static void put_text(json_t *j, const char *key, char *text)
{
	json_put(j, key, text ? json_text(text) : json_null());
	free(text);
}

/* The only one. */
static json_t *reason_json(const struct flows_command *c, const struct ledger_flow *f)
{
	char text[RINGTAP_NAME_LEN];

	if (!f->reason || f->more_reasons)
		return json_null();
	(void)ringtap_capture_reason(c->dropped.cap, 0, f->reason, text);
	return json_text(text);
}

static json_t *row(const struct flows_command *c, const struct ledger_flow *f)
{
	struct flows_row r = flows_row(c, f);
	struct estimate bits = {8 * r.byte_rate.value, 8 * r.byte_rate.bound};
	const struct ledger_segments *order =
		c->ledger.segments_at ? ledger_segments_of(&c->ledger, f) : NULL;
	json_t *j = json_object();
	char text[LEDGER_TEXT];

	json_put(j, "name", json_text(ledger_text(&c->ledger, &f->key, &c->view.s, text)));
	put_key(j, &c->ledger, &f->key, &c->view.s);
	put_estimate(j, "packets", r.packets);
	put_estimate(j, "bytes", r.bytes);
	put_estimate(j, "packets_per_second", r.packet_rate);
	put_estimate(j, "bits_per_second", bits);
	put_estimate(j, "share", r.share);
	put_estimate(j, "mean_bytes", r.mean);
	json_put(j, "counted", json_count(f->packets));
	json_put(j, "only_sent", json_count(f->own));
	json_put(j, "forwarded", json_count(f->sent));
	json_put(j, "first", json_time(f->first_ns));
	json_put(j, "last", json_time(f->last_ns));
	json_put(j, "received_by", place(&f->in, &c->view.s));
	json_put(j, "sent_by", place(&f->out, &c->view.s));
	json_put(j, "syn_unanswered",
		c->request.sample > 1 ? json_null() : json_count(flows_unanswered(c, f)));
	json_put(j, "rst", json_count(f->rst));
	json_put(j, "retransmitted", order ? json_count(order->again) : json_null());
	json_put(j, "out_of_order", order ? json_count(order->late) : json_null());
	json_put(j, "not_offered", c->fates ? json_count(f->not_offered) : json_null());
	json_put(j, "not_offered_reason", reason_json(c, f));
	json_put(j, "became", ledger_became(&c->ledger, f, text) ? json_text(text) : json_null());
	json_put(j, "latency", latency(c, f));
	put_text(j, "filter", ledger_expression(&c->ledger, &f->key));
	put_text(j, "record", flows_record(&c->ledger, &c->view.s, &f->key));
	return j;
}

static json_t *counts(const struct flows_command *c)
{
	const struct ringtap_counts s = flows_counts(c);
	json_t *j = json_object();

	json_put(j, "seen", json_count(s.seen));
	json_put(j, "captured", json_count(s.captured));
	json_put(j, "filtered", json_count(s.filtered));
	json_put(j, "not_sampled", json_count(s.not_sampled));
	json_put(j, "lost", json_count(counts_lost(&s)));
	return j;
}

static void put_export(
	json_t *list, const char *protocol, const struct collector *to, uint64_t records)
{
	json_t *j = json_object();

	json_put(j, "protocol", json_text(protocol));
	json_put(j, "collector", json_text(to->text));
	json_put(j, "records", json_count(records));
	json_put(j, "messages", json_count(to->sent));
	json_put(j, "messages_not_sent", json_count(to->not_sent));
	json_array_append_new(list, j);
}

static json_t *exports_json(const struct exports *e)
{
	json_t *list = json_array();

	if (e->sflow)
		put_export(list, "sflow", &e->sflow->to, e->sflow->packets);
	if (e->ipfix)
		put_export(list, "ipfix", &e->ipfix->to, e->ipfix->records);
	return list;
}

json_t *flows_json(void *ctx)
{
	const struct flows_command *c = ctx;
	const struct ledger_flow *top[FLOWS_ROWS_MAX];
	const struct ledger *t = &c->ledger;
	unsigned n = ledger_top(t, c->order, c->final, top, c->rows);
	bool exact = c->request.sample == 1 && !t->evicted;
	json_t *j = fates_json(&c->view), *list = json_array();
	char name[16];

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, row(c, top[i]));
	json_put(j, "view", json_text(choice(LEDGER_VIEWS, c->by, name, sizeof(name))));
	json_put(j, "sample", json_count(c->request.sample));
	json_put(j, "ids", json_boolean(t->ids));
	json_put(j, "counts", counts(c));
	json_put(j, "entries", exact ? json_count(t->table.count) : json_null());
	json_put(j, "new_per_second",
		exact && c->view.seconds > 0
			? json_number(
				  (double)(c->final ? t->table.count : t->fresh) / c->view.seconds)
			: json_null());
	json_put(j, "entries_most", json_count(c->most));
	json_put(j, "evicted", json_count(t->evicted));
	json_put(j, "evicted_packets_most", json_count(t->error));
	json_put(j, "not_offered_unread", c->fates ? json_count(c->dropped.lost) : json_null());
	json_put(j, "not_offered_reasons",
		c->fates ? fates_reasons_json(c->dropped.reasons, c->dropped.cap) : json_null());
	json_put(j, "exports", exports_json(&c->exports));
	json_put(j, "flows", list);
	j = json_document("flows", j);
	json_put(j, "final", json_boolean(c->final));
	json_put(j, "filter", json_text(c->request.expression));
	return j;
}
