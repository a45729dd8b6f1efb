/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/util.h"
#include "cli/monitor/plot.h"
#include "trigger.h"

/* ---- parsing */

static int refuse(const char *text, const char *why)
{
	message_print("flight: --on '%s': %s; see ringtap-flight(1)", text, why);
	return -EINVAL;
}

static bool is_time(enum trigger_kind k)
{
	return k >= TRIGGER_LATENCY && k <= TRIGGER_IDLE_GAP;
}

static bool is_counter(enum trigger_kind k)
{
	return k <= TRIGGER_ERRORS;
}

/* A number of packets or objects, "/s" behind counters and "%" behind levels of pools. */
static int parse_count(struct trigger *t, const char *text)
{
	size_t digits = strspn(text, "0123456789");
	char number[24];
	uint64_t n;

	if (!digits || digits >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	t->rate = is_counter(t->kind) && !strcmp(text + digits, "/s");
	t->percent = t->kind == TRIGGER_POOL && !strcmp(text + digits, "%");
	if (parse_number(number, UINT32_MAX, &n) || (text[digits] && !t->rate && !t->percent))
		return -EINVAL;
	t->threshold = (double)n;
	return 0;
}

/* What follows the name of the condition: "> 50us", "< 10%". */
static int parse_threshold(struct trigger *t, const char *text)
{
	char sign = t->kind == TRIGGER_POOL ? '<' : '>';
	uint64_t ns;

	if (!*text && is_counter(t->kind))
		return 0;
	if (*text != sign)
		return refuse(t->text, sign == '<' ? "give a level, as in 'pool < 10%'"
						   : "give a threshold, as in 'gap > 50us'");
	text += 1 + strspn(text + 1, " ");
	if (!is_time(t->kind))
		return parse_count(t, text) ? refuse(t->text, "the threshold is not a number") : 0;
	if (parse_seconds(text, &ns))
		return refuse(t->text, "the threshold is not a time, such as 50us");
	t->threshold = (double)ns;
	return 0;
}

static int parse_verdict(struct trigger *t, const char *text)
{
	t->verdict = -1;
	if (!*text)
		return 0;
	if (*text != ':')
		return refuse(t->text, "give 'doctor' or 'doctor: VERDICT'");
	text += 1 + strspn(text + 1, " ");
	for (int i = 0; i < VERDICT_COUNT; i++)
		if (!strcmp(verdict_names[i], text))
			t->verdict = i;
	return t->verdict < 0 ? refuse(t->text, "there is no such verdict") : 0;
}

int trigger_parse(struct trigger *t, const char *text)
{
	const char *rest = text + strspn(text, " ");
	size_t len = strcspn(rest, " <>:");
	int kind = choice_index(TRIGGER_NAMES, rest, len);

	t->text = text;
	if (kind < 0)
		return refuse(text, "unknown condition; choose from " TRIGGER_NAMES);
	t->kind = (enum trigger_kind)kind;
	rest += len;
	rest += strspn(rest, " ");
	if (t->kind == TRIGGER_DOCTOR)
		return parse_verdict(t, rest);
	if (t->kind == TRIGGER_EXIT)
		return *rest ? refuse(text, "'exit' has no threshold") : 0;
	return parse_threshold(t, rest);
}

unsigned trigger_collectors(const struct trigger *t)
{
	switch (t->kind) {
	case TRIGGER_UNSENT: return RINGTAP_POLLS;
	case TRIGGER_LATENCY:
	case TRIGGER_P50:
	case TRIGGER_P90:
	case TRIGGER_P99:
	case TRIGGER_P999: return RINGTAP_LATENCY;
	case TRIGGER_GAP:
	case TRIGGER_IDLE_GAP: return RINGTAP_GAPS;
	case TRIGGER_BURST: return RINGTAP_BUSY;
	case TRIGGER_POOL: return RINGTAP_POOLS;
	case TRIGGER_DOCTOR: return DOCTOR_COLLECTORS;
	default: return 0;
	}
}

bool trigger_is_level(const struct trigger *t)
{
	return t->kind == TRIGGER_POOL || t->kind == TRIGGER_DOCTOR;
}

void trigger_value(const struct trigger *t, double value, char *out, size_t size)
{
	char text[64];

	if (t->kind >= TRIGGER_DOCTOR) {
		snprintf(out, size, "%s", "");
	} else if (is_time(t->kind)) {
		plot_si(text, sizeof(text), value / 1e9, 3, "s");
		snprintf(out, size, "%s", text);
	} else {
		snprintf(out, size, "%.0f%s", value,
			t->rate                   ? " packets/s"
			: t->percent              ? " %"
			: t->kind == TRIGGER_POOL ? " objects"
						  : " packets");
	}
}

/* ---- conditions */

/* An event of the whole interval, at a place. */
static void whole(struct event *e, const struct span *s, double value, const char *where)
{
	*e = (struct event){.from_ns = s->from->taken_ns, .to_ns = s->to->taken_ns, .value = value};
	printable(e->where, sizeof(e->where), where);
}

static double counted(const struct trigger *t, const struct driver_counts *d)
{
	double n = t->kind == TRIGGER_MISSED   ? d->imissed
		   : t->kind == TRIGGER_NOMBUF ? d->rx_nombuf
		   : t->kind == TRIGGER_UNSENT ? d->unsent
					       : d->ierrors + d->oerrors;

	return t->rate ? n / d->seconds : n;
}

static bool check_counters(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(s->to, i);
		struct driver_counts d;
		double n;

		/* A port that has just appeared counts from its own beginning. */
		if (i >= s->from->port_count)
			continue;
		driver_counts(s, i, &d);
		n = counted(t, &d);
		if (!(n > t->threshold) || (met && n <= e->value))
			continue;
		met = true;
		whole(e, s, n, p->name);
		e->from_ns = ringtap_snapshot_port(s->from, i)->read_ns;
		e->to_ns = p->read_ns;
	}
	return met;
}

/* Packets of a pair that took longer than ns, and the longest time: the lower bound of its bucket,
 * within 1.6 %. */
static bool slow_packets(const struct span *s, uint32_t pair, double ns, double *longest)
{
	const struct ringtap_pair_stats *b = ringtap_snapshot_pair(s->to, pair), *a = NULL;
	uint32_t n = ringtap_latency_buckets();
	uint64_t width;

	if (pair < s->from->pair_count)
		a = ringtap_snapshot_pair(s->from, pair);
	while (n-- > 0) {
		double low = (double)ringtap_latency_low(n, &width) * 1e9 / s->tsc_hz;

		if (low <= ns)
			return false;
		*longest = low;
		if (b->bucket[n] > (a ? a->bucket[n] : 0))
			return true;
	}
	return false;
}

static bool check_pair(const struct trigger *t, const struct span *s, uint32_t pair, double *value)
{
	struct latency_rates l;

	if (t->kind == TRIGGER_LATENCY)
		return slow_packets(s, pair, t->threshold, value);
	rates_latency(s, pair, &l);
	*value = t->kind == TRIGGER_P50   ? l.p50_ns
		 : t->kind == TRIGGER_P90 ? l.p90_ns
		 : t->kind == TRIGGER_P99 ? l.p99_ns
					  : l.p999_ns;
	return *value > t->threshold;
}

static bool check_latency(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	if (s->from->switched != s->to->switched)
		return false; /* the histograms begin anew */
	for (uint32_t i = 0; i < s->to->pair_count; i++) {
		const struct ringtap_pair_stats *p = ringtap_snapshot_pair(s->to, i);
		double value;

		if (!check_pair(t, s, i, &value) || (met && value <= e->value))
			continue;
		met = true;
		whole(e, s, value, ringtap_snapshot_port(s->to, p->tx_port)->name);
	}
	return met;
}

/* Lists hold the worst: one that an earlier snapshot lacks is new, unless it only came back when
 * worse ones had become too old. */
static bool is_new(
	const struct span *s, uint32_t thread, uint64_t start_ns, uint64_t end_ns, bool gap)
{
	const struct ringtap_thread_stats *t;

	if (end_ns + NS_PER_S < s->from->taken_ns)
		return false;
	if (thread >= s->from->thread_count)
		return true;
	t = ringtap_snapshot_thread(s->from, thread);
	for (uint32_t i = 0; i < (gap ? t->gap_count : t->microburst_count); i++) {
		uint64_t had = gap ? ringtap_thread_gap(t, i)->start_ns
				   : ringtap_thread_microburst(t, i)->start_ns;

		/* Times come from a clock line that is replaced: the same one may move a little. */
		if (had + 1000 > start_ns && had < start_ns + 1000)
			return false;
	}
	return true;
}

static void at_thread(struct event *e, const struct ringtap_thread_stats *t, uint64_t start_ns,
	uint64_t end_ns, double value)
{
	*e = (struct event){.from_ns = start_ns, .to_ns = end_ns, .value = value};
	thread_name(e->where, t);
}

static bool check_gaps(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->thread_count; i++) {
		const struct ringtap_thread_stats *th = ringtap_snapshot_thread(s->to, i);

		for (uint32_t k = 0; k < th->gap_count; k++) {
			const struct ringtap_gap *g = ringtap_thread_gap(th, k);

			if (!g->packets != (t->kind == TRIGGER_IDLE_GAP) ||
				!((double)g->ns > t->threshold) ||
				(met && (double)g->ns <= e->value) ||
				!is_new(s, i, g->start_ns, g->start_ns + g->ns, true))
				continue;
			met = true;
			at_thread(e, th, g->start_ns, g->start_ns + g->ns, (double)g->ns);
		}
	}
	return met;
}

static bool check_bursts(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->thread_count; i++) {
		const struct ringtap_thread_stats *th = ringtap_snapshot_thread(s->to, i);

		for (uint32_t k = 0; k < th->microburst_count; k++) {
			const struct ringtap_microburst *b = ringtap_thread_microburst(th, k);
			double n = (double)b->packets;

			if (!(n > t->threshold) || (met && n <= e->value) ||
				!is_new(s, i, b->start_ns, b->start_ns + b->ns, false))
				continue;
			met = true;
			at_thread(e, th, b->start_ns, b->start_ns + b->ns, n);
		}
	}
	return met;
}

static bool check_pools(const struct trigger *t, const struct span *s, struct event *e)
{
	bool met = false;

	for (uint32_t i = 0; i < s->to->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(s->to, i);
		double level = p->available;

		if (t->percent && p->size)
			level = 100 * level / p->size;
		if (p->gone || !p->size || !(level < t->threshold) || (met && level >= e->value))
			continue;
		met = true;
		whole(e, s, level, p->name);
	}
	return met;
}

bool trigger_check(const struct trigger *t, const struct span *s, struct event *e)
{
	switch (t->kind) {
	case TRIGGER_MISSED:
	case TRIGGER_NOMBUF:
	case TRIGGER_UNSENT:
	case TRIGGER_ERRORS: return check_counters(t, s, e);
	case TRIGGER_LATENCY:
	case TRIGGER_P50:
	case TRIGGER_P90:
	case TRIGGER_P99:
	case TRIGGER_P999: return check_latency(t, s, e);
	case TRIGGER_GAP:
	case TRIGGER_IDLE_GAP: return check_gaps(t, s, e);
	case TRIGGER_BURST: return check_bursts(t, s, e);
	case TRIGGER_POOL: return check_pools(t, s, e);
	default: return false;
	}
}

bool trigger_check_doctor(const struct trigger *t, const struct diagnosis *d, struct event *e)
{
	for (unsigned i = 0; i < d->count; i++) {
		const struct verdict *v = &d->verdict[i];

		if (t->verdict < 0 ? v->grade != GRADE_FAULT : (int)v->id != t->verdict)
			continue;
		snprintf(e->where, sizeof(e->where), "%s%s%s", verdict_names[v->id],
			*v->where ? ": " : "", v->where);
		return true;
	}
	return false;
}
