/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "base/util.h"
#include "packet/size_json.h"
#include "mbuf_history.h"
#include "tables.h"

#define GROUPS_SHOWN 12
#define FLOWS_SHOWN  10

void fates_head(const struct fates_view *v, FILE *f)
{
	const struct fates_session *s = &v->s;

	fprintf(f, "ringtap %s  %s", s->command, s->app.name);
	if (s->info.pid)
		fprintf(f, " (%s, pid %u)", s->info.program, s->info.pid);
	fprintf(f, ", %.1f s\n", fates_seconds(s));
}

int fates_row(struct sheet *t, const char *name, uint64_t packets, uint64_t whole)
{
	int ret = sheet_row(t);

	if (ret)
		return ret;
	sheet_put(t, 0, "%s", name);
	sheet_put_count(t, 1, packets);
	sheet_put(t, 2, "%.1f", percent(packets, whole));
	return 0;
}

/* "10.0.0.1:53 > 10.0.0.2:4711 UDP, 98 bytes, TTL 64, at p0 queue 3, 1.2 ms" */
static void put_example(
	struct sheet *t, unsigned column, const struct sample *p, const struct fates_session *s)
{
	char text[SAMPLE_TEXT], port[RINGTAP_NAME_LEN], age[32];

	sheet_put(t, column, "%s, at %s queue %u, %s", sample_text(p, text),
		fates_port(s, p->interface, port), p->queue, format_ns(age, (double)p->age_ns));
}

static double rate(uint64_t packets, uint64_t marked, double seconds)
{
	return seconds > 0 ? (double)(packets - marked) / seconds : 0;
}

static int put_group(struct sheet *t, const struct packet_group *group,
	const struct packet_groups *g, const struct fates_session *s, double seconds)
{
	char text[FORMAT_LEN];
	int ret = fates_row(t, group->name, group->packets, g->packets);

	if (ret)
		return ret;
	if (seconds > 0)
		sheet_put(
			t, 3, "%s", format_si(text, rate(group->packets, group->marked, seconds)));
	else
		sheet_put_ns(t, 3, (double)group->oldest_ns);
	put_example(t, 4, &group->example, s);
	return 0;
}

static int print_protocols(const struct packet_groups *g, const struct fates_session *s,
	const char *title, double seconds, FILE *f)
{
	const struct packet_group *top[GROUPS_SHOWN];
	unsigned n = groups_top(g, top, GROUPS_SHOWN);
	struct sheet t = {.title = title,
		.heads = {"protocol", "packets", "%", seconds > 0 ? "a second" : "oldest",
			"example, where and how old"},
		.columns = 5,
		.wide = true,
		.more = g->protocols.count - n};
	int ret = 0;

	for (unsigned i = 0; i < n && !ret; i++)
		ret = put_group(&t, top[i], g, s, seconds);
	return sheet_end(&t, ret, f);
}

/* Nothing where DPDK keeps none. */
static int print_histories(const struct packet_groups *g, FILE *f)
{
	const struct packet_group *top[GROUPS_SHOWN];
	unsigned n = groups_top(g, top, GROUPS_SHOWN);
	struct sheet t = {.title = "Operations on the mbufs of these examples, the oldest first",
		.heads = {"protocol", "mbuf", "operations"},
		.columns = 3,
		.left = 1u << 1,
		.fold = 1u << 2,
		.wide = true};
	char text[HISTORY_TEXT];
	int ret = 0;

	for (unsigned i = 0; i < n && !ret; i++) {
		const struct sample *p = &top[i]->example;

		if (!p->has_history)
			continue;
		ret = sheet_row(&t);
		if (ret)
			break;
		sheet_put(&t, 0, "%s", top[i]->name);
		sheet_put(&t, 1, "0x%" PRIx64, p->mbuf);
		sheet_put(&t, 2, "%s", history_text(p->history, text));
	}
	return sheet_end(&t, ret, f);
}

static int print_flows(const struct packet_groups *g, FILE *f)
{
	const struct flow *top[FLOWS_SHOWN];
	size_t n = flows_top(g->flows, FLOWS_BY_PACKETS, top, FLOWS_SHOWN);
	char text[FLOW_TEXT];
	struct sheet t = {.title = "By flow",
		.heads = {"flow", "packets", "%"},
		.columns = 3,
		.more = flows_count(g->flows) - n};
	int ret = 0;

	if (flows_error(g->flows))
		t.title = "By flow, the largest: small ones were forgotten";
	for (size_t i = 0; i < n && !ret; i++)
		ret = fates_row(&t, flow_text(&top[i]->key, text), top[i]->packets[0], g->packets);
	return sheet_end(&t, ret, f);
}

static int print_sizes(const struct packet_groups *g, FILE *f)
{
	struct sheet t = {.title = "By size", .heads = {"bytes", "packets", "%"}, .columns = 3};
	int ret = 0;

	for (unsigned i = 0; i < SIZES && !ret; i++)
		if (g->sizes[i])
			ret = fates_row(&t, size_names[i], g->sizes[i], g->packets);
	return sheet_end(&t, ret, f);
}

/* The numbers with packets, most packets first; 0 is among them if another one is. Returns how
 * many.
 */
static unsigned sort_reasons(const uint64_t packets[REASONS], unsigned out[REASONS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < REASONS; i++) {
		unsigned at = n;

		if (!packets[i])
			continue;
		for (; at && packets[out[at - 1]] < packets[i]; at--)
			out[at] = out[at - 1];
		out[at] = i;
		n++;
	}
	return n == 1 && !out[0] ? 0 : n;
}

int fates_print_reasons(
	const uint64_t packets[REASONS], const struct ringtap_capture *cap, uint64_t whole, FILE *f)
{
	unsigned list[REASONS], n = sort_reasons(packets, list);
	struct sheet t = {.title = "By reason, as the application gave it",
		.heads = {"reason", "packets", "%"},
		.columns = 3};
	char text[RINGTAP_NAME_LEN];
	int ret = 0;

	for (unsigned i = 0; i < n && !ret; i++) {
		(void)ringtap_capture_reason(cap, 0, list[i], text);
		ret = fates_row(&t, list[i] ? text : "none", packets[list[i]], whole);
	}
	return sheet_end(&t, ret, f);
}

json_t *fates_reasons_json(const uint64_t packets[REASONS], const struct ringtap_capture *cap)
{
	unsigned list[REASONS], n = sort_reasons(packets, list);
	json_t *all = json_array();
	char text[RINGTAP_NAME_LEN];

	for (unsigned i = 0; i < n; i++) {
		json_t *j = json_object();

		(void)ringtap_capture_reason(cap, 0, list[i], text);
		json_put(j, "reason", json_text(list[i] ? text : NULL));
		json_put(j, "packets", json_count(packets[list[i]]));
		json_array_append_new(all, j);
	}
	return all;
}

int groups_print(const struct packet_groups *g, const struct fates_session *s, const char *title,
	double seconds, FILE *f)
{
	int ret = print_protocols(g, s, title, seconds, f);

	if (!ret)
		ret = print_histories(g, f);
	if (!ret)
		ret = fates_print_reasons(g->reasons, s->cap, g->packets, f);
	if (!ret)
		ret = print_flows(g, f);
	return ret ? ret : print_sizes(g, f);
}

void fates_print_pools_unread(const struct fates_session *s, FILE *f)
{
	char names[512] = "";

	for (uint32_t i = 0; i < s->fates->pool_count; i++) {
		const struct ringtap_fate_pool *p = ringtap_fates_pool(s->fates, i);

		if (!p->walked)
			text_list_add(names, sizeof(names), p->name);
	}
	if (*names)
		text_wrapf(f, 0,
			"The free mbufs of some pools cannot be found, so that packets of them may "
			"be open although they were freed: %s.",
			names);
	if (s->fates->pools_beyond)
		text_wrapf(f, 0,
			"There are %u pools more, too many: their free mbufs cannot be found.",
			s->fates->pools_beyond);
}

/* ---- JSON ---- */

static json_t *example_json(const struct sample *p, const struct fates_session *s)
{
	char text[SAMPLE_TEXT], mbuf[24];
	json_t *j = json_object();

	snprintf(mbuf, sizeof(mbuf), "0x%" PRIx64, p->mbuf);
	json_put(j, "packet", json_text(sample_text(p, text)));
	json_put(j, "port", fates_port_json(s, p->interface));
	json_put(j, "queue", json_count(p->queue));
	json_put(j, "time", json_time(p->ns));
	json_put(j, "age_ns", json_count(p->age_ns));
	json_put(j, "mbuf", p->mbuf ? json_text(mbuf) : json_null());
	json_put(j, "history", p->has_history ? history_json(p->history) : json_null());
	return j;
}

static json_t *protocols_json(
	const struct packet_groups *g, const struct fates_session *s, double seconds)
{
	const struct packet_group *top[KEYED_MAX];
	unsigned n = groups_top(g, top, KEYED_MAX);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_t *j = json_object();

		json_put(j, "protocol", json_text(top[i]->name));
		json_put(j, "packets", json_count(top[i]->packets));
		json_put(j, "bytes", json_count(top[i]->bytes));
		json_put(j, "packets_per_second",
			json_number(seconds > 0 ? rate(top[i]->packets, top[i]->marked, seconds)
						: NAN));
		json_put(j, "oldest_ns", json_count(top[i]->oldest_ns));
		json_put(j, "example", example_json(&top[i]->example, s));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *flows_json(const struct packet_groups *g)
{
	const struct flow *top[FLOWS_SHOWN];
	size_t n = flows_top(g->flows, FLOWS_BY_PACKETS, top, FLOWS_SHOWN);
	char text[FLOW_TEXT];
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *j = json_object();

		json_put(j, "flow", json_text(flow_text(&top[i]->key, text)));
		json_put(j, "packets", json_count(top[i]->packets[0]));
		json_put(j, "bytes", json_count(top[i]->bytes));
		json_array_append_new(list, j);
	}
	return list;
}

void groups_json(
	json_t *j, const struct packet_groups *g, const struct fates_session *s, double seconds)
{
	json_put(j, "packets", json_count(g->packets));
	json_put(j, "bytes", json_count(g->bytes));
	json_put(j, "protocols", protocols_json(g, s, seconds));
	json_put(j, "flows", flows_json(g));
	json_put(j, "flows_counted", json_count(flows_count(g->flows)));
	json_put(j, "flow_error_packets", json_count(flows_error(g->flows)));
	json_put(j, "sizes", sizes_json(g->sizes));
	json_put(j, "reasons", fates_reasons_json(g->reasons, s->cap));
}

json_t *fates_queue_json(const struct fates_session *s, const struct ringtap_fate_queue *q)
{
	json_t *j = json_object();

	json_put(j, "port", fates_port_json(s, q->interface));
	json_put(j, "queue", json_count(q->queue));
	json_put(j, "received", json_count(q->received));
	return j;
}

json_t *fates_json(const struct fates_view *v)
{
	const struct fates_session *s = &v->s;
	json_t *j = json_application(s->app.name, s->info.pid, s->info.program);

	json_put(j, "ended", json_boolean(s->ended));
	json_put(j, "duration_ns", json_ns(fates_seconds(s) * 1e9));
	json_put(j, "interval_ns", json_ns(v->seconds * 1e9));
	return j;
}
