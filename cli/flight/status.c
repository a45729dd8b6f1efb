/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a recorder answers to ringtap flight top and ringtap export. The keys are those of
 * common/metrics.h.
 *
 * Packets that are kept are not read: what a port has in memory is the difference of its counters,
 * between the time since which all is kept and now. They are read once a second.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "recorder/ask.h"
#include "flight.h"
#include "history.h"
#include "status.h"

#define SAMPLES 512 /* then every second one goes, and they come half as often */

struct port_count {
	uint64_t packets, bytes; /* captured since the beginning */
};

struct port_name {
	char name[RINGTAP_NAME_LEN];
	uint16_t index;
};

struct sample {
	uint64_t ns;
	unsigned count; /* ports that were there: the first of them */
	struct port_count *ports;
};

struct flight_status {
	struct sample samples[SAMPLES]; /* oldest first */
	unsigned count;
	uint64_t every_ns, lost, not_sampled;
	struct port_name *names; /* the last sample's ports */
	int fd;                  /* from ask_listen() */
	uint64_t rest_ns;        /* CLOCK_MONOTONIC, no answer before */
};

/* ---- counters */

static void sum_taps(struct flight_status *s, struct sample *now, const struct ringtap_capture *w)
{
	s->lost = s->not_sampled = 0;
	for (unsigned i = 0; i < ringtap_capture_tap_count(w); i++) {
		struct ringtap_tap t = {.size = sizeof(t)};

		if (ringtap_capture_tap(w, i, &t))
			continue;
		for (unsigned k = 0; k < RINGTAP_LOST_MAX; k++)
			s->lost += t.counts.lost[k];
		s->not_sampled += t.counts.not_sampled;
		if (t.interface >= now->count)
			continue;
		now->ports[t.interface].packets += t.counts.captured;
		now->ports[t.interface].bytes += t.counts.bytes;
	}
}

/* The keeper changes the table of interfaces of its capture: a window has a copy. */
static int take_sample(const struct flight *f, struct sample *now)
{
	struct flight_status *s = f->status;
	struct ringtap_capture *w;
	struct port_name *names;
	int ret;

	*now = (struct sample){.ns = now_ns(CLOCK_REALTIME)};
	ret = ringtap_capture_window(f->cap, now->ns, now->ns, &w);
	if (ret)
		return ret;
	now->count = ringtap_capture_interface_count(w);
	now->ports = calloc(now->count + 1, sizeof(*now->ports));
	names = realloc(s->names, (now->count + 1) * sizeof(*names));
	s->names = names ? names : s->names;
	for (unsigned i = 0; names && i < now->count; i++) {
		struct ringtap_interface info = {.size = sizeof(info)};

		(void)ringtap_capture_interface(w, i, &info);
		memcpy(names[i].name, info.name, sizeof(names[i].name));
		names[i].index = info.port_id;
	}
	if (names && now->ports)
		sum_taps(s, now, w);
	ringtap_capture_close(w);
	if (names && now->ports)
		return 0;
	free(now->ports);
	return -ENOMEM;
}

static void thin_out(struct flight_status *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->count; i++) {
		if (i % 2)
			free(s->samples[i].ports);
		else
			s->samples[n++] = s->samples[i];
	}
	s->count = n;
	s->every_ns *= 2;
}

void status_step(struct flight *f)
{
	struct flight_status *s = f->status;
	struct sample now;

	if (!s)
		return;
	if (s->count && now_ns(CLOCK_REALTIME) - s->samples[s->count - 1].ns < s->every_ns)
		return;
	if (take_sample(f, &now))
		return;
	if (s->count == SAMPLES)
		thin_out(s);
	s->samples[s->count++] = now;
}

static double between(const struct sample *a, const struct sample *b, uint64_t ns)
{
	return b->ns > a->ns ? (double)(ns - a->ns) / (double)(b->ns - a->ns) : 0;
}

/* Packets that port i had captured at a time; between two samples in proportion. */
static struct port_count count_at(
	const struct flight_status *s, const struct sample *now, unsigned i, uint64_t ns)
{
	const struct port_count none = {0};
	unsigned n = 0;

	while (n < s->count && s->samples[n].ns <= ns)
		n++;
	if (!n)
		return none;
	const struct sample *a = &s->samples[n - 1], *b = n < s->count ? &s->samples[n] : now;
	struct port_count x = i < a->count ? a->ports[i] : none;
	struct port_count y = i < b->count ? b->ports[i] : none;
	double part = between(a, b, ns);

	x.packets += (uint64_t)((double)(y.packets - x.packets) * part);
	x.bytes += (uint64_t)((double)(y.bytes - x.bytes) * part);
	return x;
}

/* ---- the document */

static json_t *ports_json(const struct flight_status *s, const struct sample *now,
	uint64_t since_ns, uint64_t *packets)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < now->count; i++) {
		struct port_count from =
			since_ns ? count_at(s, now, i, since_ns) : (struct port_count){0};
		uint64_t n = now->ports[i].packets - from.packets;
		json_t *port;

		*packets += n;
		port = json_port(s->names[i].index, s->names[i].name);
		json_put(port, "packets", json_count(n));
		json_put(port, "bytes", json_count(now->ports[i].bytes - from.bytes));
		json_array_append_new(list, port);
	}
	return list;
}

/* The last one or two seconds. False: there are none yet. */
static bool last_seconds(const struct flight *f, struct span *s)
{
	unsigned n = f->history_count;

	if (!n || !f->last)
		return false;
	*s = (struct span){
		.from = f->history[n > 1 ? n - 2 : 0], .to = f->last, .tsc_hz = f->tsc_hz};
	s->seconds = (double)(s->to->taken_mono_ns - s->from->taken_mono_ns) / NS_PER_S;
	return s->seconds > 0;
}

/* The worst value of late, whether it is beyond the threshold or not: of the interval of 'over',
 * where the condition has one. False: there is none. */
static bool current_value(const struct flight *f, const struct trigger *t, struct event *e)
{
	struct trigger any = *t;
	struct span s;

	if (t->kind >= TRIGGER_DOCTOR ||
		!(t->over_ns ? history_last(f, t->over_ns, &s) : last_seconds(f, &s)))
		return false;
	any.threshold = t->kind == TRIGGER_POOL ? INFINITY : -1;
	return trigger_check(&any, &s, e);
}

static double share_of(const struct trigger *t, double value)
{
	double a = t->kind == TRIGGER_POOL ? t->threshold : value;
	double b = t->kind == TRIGGER_POOL ? value : t->threshold;

	return b > 0 ? a / b : NAN;
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_text(text) : json_null();
}

static json_t *condition_json(const struct flight *f, unsigned i)
{
	const struct trigger *t = &f->cfg->triggers[i];
	char value[64] = "", limit[64] = "";
	struct event e = {0};
	bool known = current_value(f, t, &e);
	double share = known ? share_of(t, e.value) : NAN;

	if (known)
		trigger_value(t, e.value, value, sizeof(value));
	trigger_value(t, t->threshold, limit, sizeof(limit));
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", json_text(t->name),
		"condition", json_text(t->text), "value", text_or_null(value), "threshold",
		text_or_null(limit), "threshold_share",
		isfinite(share) ? json_real(share) : json_null(), "where", text_or_null(e.where),
		"incidents", json_count(f->states[i].made), "suppressed",
		json_count(f->states[i].suppressed), "before_ns", json_count(t->before_ns),
		"after_ns", json_count(t->after_ns));
}

static json_t *recent_json(const struct flight *f)
{
	json_t *list = json_array();
	unsigned n = f->finished < FLIGHT_RECENT ? (unsigned)f->finished : FLIGHT_RECENT;

	for (unsigned i = 0; i < n; i++) {
		const struct finished *d = &f->recent[(f->finished - n + i) % FLIGHT_RECENT];

		json_array_append_new(list,
			json_pack("{s:o,s:o,s:o,s:o,s:o,s:b}", "name", json_text(d->name),
				"packets", json_count(d->packets), "bytes", json_count(d->bytes),
				"lost", json_count(d->lost), "missing_ns",
				json_count(d->missing_ns), "failed", d->failed));
	}
	return list;
}

static void set(json_t *j, const char *key, json_t *value)
{
	json_object_set_new(j, key, value);
}

static void set_counts(json_t *j, const struct flight *f, const struct sample *now)
{
	struct ringtap_kept k = {.size = sizeof(k)};
	uint64_t since, packets = 0;

	(void)ringtap_capture_kept(f->cap, &k);
	since = k.since_ns > f->start_ns ? k.since_ns : f->start_ns;
	set(j, "ports", ports_json(f->status, now, k.since_ns, &packets));
	set(j, "kept_ns", json_count(now->ns > since ? now->ns - since : 0));
	set(j, "kept_packets", json_count(packets));
	set(j, "kept_bytes", json_count(k.bytes));
	set(j, "buffer_bytes", json_count(k.buffer_size));
	set(j, "lost", json_count(f->status->lost));
	set(j, "not_sampled", json_count(f->status->not_sampled));
	set(j, "writing", json_count(f->incident_count));
	set(j, "failed", json_count(f->failed));
	set(j, "incomplete", json_count(f->incomplete));
	set(j, "missing_ns", json_count(f->missing_ns));
	set(j, "incident_lost", json_count(f->incident_lost));
}

/* The caller frees; NULL: no memory. */
static char *document(const struct flight *f)
{
	json_t *j = json_object(), *conditions = json_array();
	char folder[PATH_MAX];
	struct sample now;
	char *text = NULL;

	set(j, "application", json_application(f->app.name, f->app.info.pid, f->app.info.program));
	set(j, "pid", json_integer(getpid()));
	set(j, "folder", json_text(realpath(f->cfg->folder, folder) ? folder : f->cfg->folder));
	for (unsigned i = 0; i < f->cfg->trigger_count; i++)
		json_array_append_new(conditions, condition_json(f, i));
	set(j, "conditions", conditions);
	set(j, "recent", recent_json(f));
	if (!take_sample(f, &now)) {
		set(j, "time", json_time(now.ns));
		set_counts(j, f, &now);
		free(now.ports);
		text = json_dumps(j, JSON_COMPACT);
	}
	json_decref(j);
	return text;
}

/* ---- */

int status_open(struct flight *f)
{
	int ret;

	f->status = calloc(1, sizeof(*f->status));
	if (!f->status)
		return -ENOMEM;
	f->status->every_ns = NS_PER_S;
	f->status->fd = ret = ask_listen(f->app.dir);
	return ret < 0 ? ret : 0;
}

int status_fd(const struct flight *f)
{
	const struct flight_status *s = f->status;

	return s && now_ns(CLOCK_MONOTONIC) >= s->rest_ns ? s->fd : -1;
}

void status_answer(struct flight *f)
{
	char *text;

	if (!ask_is_waiting(status_fd(f)))
		return;
	text = document(f);
	/* The client stays: without descriptors for it, the socket would be readable all the time.
	 */
	if (ask_answer(f->status->fd, text ? text : ""))
		f->status->rest_ns = now_ns(CLOCK_MONOTONIC) + NS_PER_S;
	free(text);
}

void status_close(struct flight *f)
{
	struct flight_status *s = f->status;

	if (!s)
		return;
	ask_close(s->fd, f->app.dir);
	for (unsigned i = 0; i < s->count; i++)
		free(s->samples[i].ports);
	free(s->names);
	free(s);
	f->status = NULL;
}
