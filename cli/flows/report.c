/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "common/proto.h"
#include "fates/tables.h"
#include "fates/words.h"
#include "flows.h"
#include "target/counts.h"
#include "flows/live.h"
#include "flows/view.h"
#include "show/text_screen.h"

#define NOTES_LEN 128

static struct estimate per_second(struct estimate e, double seconds)
{
	return (struct estimate){e.value / seconds, e.bound / seconds};
}

struct flows_row flows_row(const struct flows_command *c, const struct ledger_flow *f)
{
	const struct ledger *t = &c->ledger;
	const uint32_t n = c->request.sample;
	double seconds = c->view.seconds > 0 ? c->view.seconds : 1;
	struct flows_row r = {.packets = estimate_packets(n, f->packets),
		.bytes = estimate_sum(n, f->packets, (double)f->bytes, f->squares),
		.mean = estimate_mean(n, f->packets, (double)f->bytes, f->squares)};
	uint64_t recent = ledger_recent(t, f), whole = ledger_recent(t, &t->all);

	if (c->final) {
		r.packet_rate = per_second(r.packets, seconds);
		r.byte_rate = per_second(r.bytes, seconds);
		recent = f->packets;
		whole = t->all.packets;
	} else if (recent) {
		r.packet_rate = per_second(estimate_packets(n, recent), seconds);
		r.byte_rate = per_second(
			estimate_sum(n, recent, (double)f->recent_bytes, f->recent_squares),
			seconds);
	}
	r.share = estimate_share(n, recent, whole);
	return r;
}

uint64_t flows_unanswered(const struct flows_command *c, const struct ledger_flow *f)
{
	return c->request.sample > 1 ? 0 : ledger_unanswered(&c->ledger, f);
}

struct ringtap_counts flows_counts(const struct flows_command *c)
{
	struct ringtap_stats s = {.size = sizeof(s)};

	(void)ringtap_capture_stats(c->view.s.cap, &s);
	return s.total;
}

/* "12.3 k ±0.4 k"; "±?": too few packets to say. */
static void put_bounded(
	struct sheet *t, unsigned column, struct estimate e, const char *value, const char *bound)
{
	if (e.bound == 0)
		sheet_put(t, column, "%s", value);
	else
		sheet_put(t, column, "%s ±%s", value, isnan(e.bound) ? "?" : bound);
}

static void put_estimate(struct sheet *t, unsigned column, struct estimate e)
{
	char value[FORMAT_LEN], bound[FORMAT_LEN];

	put_bounded(t, column, e, format_si(value, e.value), format_si(bound, e.bound));
}

/* In a unit that the head has. */
static void put_plain(struct sheet *t, unsigned column, struct estimate e, int decimals)
{
	char value[FORMAT_LEN], bound[FORMAT_LEN];

	snprintf(value, sizeof(value), "%.*f", decimals, e.value);
	snprintf(bound, sizeof(bound), "%.*f", decimals, e.bound);
	put_bounded(t, column, e, value, bound);
}

static void put_latency(struct sheet *t, unsigned column, const struct flows_command *c,
	const struct ledger_flow *f, double share)
{
	struct estimate e = ledger_quantile_of(f, c->request.sample, share);
	char value[FORMAT_LEN], bound[FORMAT_LEN];

	if (!isnan(e.value))
		put_bounded(t, column, e, format_ns(value, e.value), format_ns(bound, e.bound));
}

static void put_way(struct sheet *t, unsigned column, const struct flows_command *c,
	const struct ledger_flow *f)
{
	char in[LEDGER_TEXT], out[LEDGER_TEXT], became[LEDGER_TEXT];
	const bool changed = ledger_became(&c->ledger, f, became);

	ledger_place_text(&f->in, &c->view.s, in);
	ledger_place_text(&f->out, &c->view.s, out);
	sheet_put(t, column, "%s%s%s%s%s", in, *out ? " → " : "", out, changed ? ", became " : "",
		changed ? became : "");
}

/* ", TEXT 12"; nothing of 0. */
static void put_note(char *text, const char *name, struct estimate e)
{
	char value[FORMAT_LEN], bound[FORMAT_LEN], note[96];

	if (!(e.value > 0))
		return;
	snprintf(note, sizeof(note), "%s %s%s%s", name, format_si(value, e.value),
		e.bound > 0 ? " ±" : "", e.bound > 0 ? format_si(bound, e.bound) : "");
	text_list_add(text, NOTES_LEN, note);
}

static struct estimate exactly(uint64_t n)
{
	return (struct estimate){(double)n, 0};
}

static void put_notes(struct sheet *t, unsigned column, const struct flows_command *c,
	const struct ledger_flow *f)
{
	char text[NOTES_LEN] = "";

	put_note(text, "SYN", exactly(flows_unanswered(c, f)));
	put_note(text, "RST", estimate_packets(c->request.sample, f->rst));
	if (c->ledger.segments_at) {
		put_note(text, "again", exactly(ledger_segments_of(&c->ledger, f)->again));
		put_note(text, "late", exactly(ledger_segments_of(&c->ledger, f)->late));
	}
	sheet_put(t, column, "%s", text);
}

/* Packets, and of how many. */
static void put_not_offered(struct sheet *t, unsigned column, const struct flows_command *c,
	const struct ledger_flow *f)
{
	char count[FORMAT_LEN], reason[RINGTAP_NAME_LEN];

	if (!f->not_offered)
		return;
	(void)ringtap_capture_reason(c->dropped.cap, 0, f->reason, reason);
	sheet_put(t, column, "%s (%.3g %%)%s%s", format_count(count, f->not_offered),
		percent(f->not_offered, f->packets), f->more_reasons || f->reason ? ", " : "",
		f->more_reasons ? "several reasons"
		: f->reason     ? reason
				: "");
}

static int put_row(struct sheet *t, const struct flows_command *c, const struct ledger_flow *f)
{
	struct flows_row r = flows_row(c, f);
	struct estimate bits = {8 * r.byte_rate.value, 8 * r.byte_rate.bound};
	char text[LEDGER_TEXT];

	if (sheet_row(t))
		return -1;
	sheet_put(t, 0, "%s", ledger_text(&c->ledger, &f->key, &c->view.s, text));
	put_estimate(t, 1, r.packet_rate);
	put_estimate(t, 2, bits);
	put_plain(t, 3, (struct estimate){100 * r.share.value, 100 * r.share.bound},
		r.share.bound > 0 ? 2 : 1);
	put_estimate(t, 4, r.packets);
	put_plain(t, 5, r.mean, 0);
	put_way(t, 6, c, f);
	put_notes(t, 7, c, f);
	if (c->ledger.ids) {
		put_latency(t, 8, c, f, 0.5);
		put_latency(t, 9, c, f, 0.99);
	}
	if (c->fates)
		put_not_offered(t, c->ledger.ids ? 10 : 8, c, f);
	return 0;
}

/* The largest flow is that of most questions. */
static void print_record(const struct flows_command *c, const struct flow_key *k, FILE *f)
{
	char *record = flows_record(&c->ledger, &c->view.s, k);

	if (record)
		fprintf(f, "\n  The first one alone: %s\n", record);
	free(record);
}

static int print_flows(struct flows_command *c, FILE *f)
{
	const struct ledger_flow *top[FLOWS_ROWS_MAX];
	unsigned n = ledger_top(&c->ledger, c->order, c->final, top, c->rows);
	struct sheet t = {.title = "Flows",
		.heads = {"flow", "packets/s", "bit/s", "%", "packets", "bytes each", "way", "TCP",
			"p50", "p99"},
		.columns = c->ledger.ids ? 10 : 8,
		.left = 1 << 6 | 1 << 7,
		.mark = c->view.screen ? TEXT_ROW : 0,
		.cut = 1 << 0,
		.spare = 0xf0};
	int ret = 0;

	if (c->fates)
		t.heads[t.columns++] = "not offered";
	if (c->by != LEDGER_5_TUPLE && c->by != LEDGER_INNER)
		t.title = "Packets";
	for (unsigned i = 0; i < n && !ret; i++) {
		c->shown[i] = top[i]->key;
		ret = put_row(&t, c, top[i]);
	}
	c->shown_count = n;
	t.more = c->ledger.table.count - n;
	ret = sheet_end(&t, ret, f);
	if (!ret && n && !c->view.screen)
		print_record(c, &c->shown[0], f);
	return ret;
}

static void print_memory(const struct flows_command *c, FILE *f)
{
	const struct ledger *t = &c->ledger;
	char evicted[FORMAT_LEN], error[FORMAT_LEN];

	if (t->evicted)
		text_wrapf(f, 2,
			"%s entries were forgotten, those with the fewest packets (--max-flows %" PRIu32
			"): an entry may have had up to %s packets%s more",
			format_count(evicted, t->evicted), c->most, format_count(error, t->error),
			c->request.sample > 1 ? " of the sample" : "");
}

/* Exact mode only: a sample misses small flows. */
static void print_numbers(const struct flows_command *c, FILE *f)
{
	const struct ledger *t = &c->ledger;
	char count[FORMAT_LEN], fresh[FORMAT_LEN];

	if (c->request.sample > 1 || t->evicted)
		return;
	text_wrapf(f, 2, "%s entries, %s new a second", format_count(count, t->table.count),
		format_si(fresh, (double)(c->final ? t->table.count : t->fresh) /
					 (c->view.seconds > 0 ? c->view.seconds : 1)));
}

/* N for the rate of now, if that of the beginning does not fit; else 0. It stays as it is: the
 * estimates of one table need the same one. */
static uint32_t other_sample(const struct flows_command *c)
{
	return c->view.seconds > 0 && !c->final
		       ? flows_sample_now(
				 &c->request, c->ledger.all.recent_packets, c->view.seconds)
		       : 0;
}

static void print_sum(const struct flows_command *c, FILE *f)
{
	const struct ringtap_counts s = flows_counts(c);
	char seen[FORMAT_LEN], captured[FORMAT_LEN], filtered[FORMAT_LEN], left[FORMAT_LEN],
		lost[FORMAT_LEN];
	const uint32_t n = other_sample(c);
	const uint64_t sum = counts_lost(&s);

	text_wrapf(f, 2, "%s packets seen: %s counted, %s filtered, %s not sampled, %s lost%s",
		format_count(seen, s.seen), format_count(captured, s.captured),
		format_count(filtered, s.filtered), format_count(left, s.not_sampled),
		format_count(lost, sum), c->final ? "" : " so far");
	if (sum)
		text_wrapf(f, 2,
			"Lost packets are missing in the table: this command was too slow for them. "
			"Sample more thinly (--sample %" PRIu32 "), or filter.",
			n > c->request.sample               ? n
			: c->request.sample < RT_SAMPLE_MAX ? 2 * c->request.sample
							    : c->request.sample);
	if (c->dropped.lost)
		text_wrapf(f, 2, "%s more packets were not offered; their flows are not known",
			format_count(lost, c->dropped.lost));
	if (c->request.sample > 1)
		text_wrapf(f, 2,
			"One of %" PRIu32
			" packets is counted; numbers are estimates, ± what 95 of 100 are within "
			"(±?: too few packets to say). --sample 1 counts all.",
			c->request.sample);
	if (c->request.by_rate)
		text_wrapf(f, 2, "It costs %s%s.", FLOWS_LIVE_PRICE,
			c->request.ids ? "; ids cost more" : "");
	if (n > c->request.sample && !sum)
		text_wrapf(f, 2,
			"Packets come faster than at the beginning, and each counted one costs the "
			"application 40 ns: start again, or with --sample %" PRIu32 ".",
			n);
	else if (n && n < c->request.sample)
		text_wrapf(f, 2,
			"Packets come more slowly than at the beginning: start again for closer "
			"estimates, or with --sample %" PRIu32 ".",
			n);
}

static void print_export(
	FILE *f, const char *protocol, const struct collector *to, uint64_t n, const char *what)
{
	char records[FORMAT_LEN], sent[FORMAT_LEN], not_sent[FORMAT_LEN];

	text_wrapf(f, 2, "%s to %s: %s %s, %s messages, %s more not sent", protocol, to->text,
		format_count(records, n), what, format_count(sent, to->sent),
		format_count(not_sent, to->not_sent));
}

static void print_exports(const struct flows_command *c, FILE *f)
{
	const struct sflow *s = c->exports.sflow;
	const struct ipfix *x = c->exports.ipfix;

	if (s)
		print_export(f, "sFlow", &s->to, s->packets, "packets");
	if (x)
		print_export(f, "IPFIX", &x->to, x->records, "flows");
}

int flows_text(void *ctx, FILE *f)
{
	struct flows_command *c = ctx;
	int ret;

	fates_head(&c->view, f);
	if (c->view.screen && c->detail.open) {
		flows_detail_text(&c->detail, &c->ledger, &c->view.s, c->request.sample > 1, f);
		return 0;
	}
	print_sum(c, f);
	print_numbers(c, f);
	print_memory(c, f);
	print_exports(c, f);
	ret = print_flows(c, f);
	if (ret || !c->fates)
		return ret;
	ret = fates_print_reasons(c->dropped.reasons, c->dropped.cap, c->ledger.all.not_offered, f);
	if (!ret)
		text_wrapf(f, 0, FATES_NOT_OFFERED ".");
	return ret;
}
