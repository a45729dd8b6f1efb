/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "common/array.h"
#include "flows.h"
#include "flows/capture.h"
#include "flows/estimate.h"
#include "flows/view.h"

#define SNAPLEN     128 /* bytes: headers, with tags and options */
#define BUFFER_SIZE (16u << 20)
#define FLOWS_MOST  (1u << 16)
#define INTERVAL_NS (10 * NS_PER_S)
#define TURN_NS     (NS_PER_S / 20)
#define RETRY_NS    (10 * NS_PER_S)

const struct rt_metric export_flow_metrics[EXPORT_FLOW_METRICS] = {
	{.prometheus = "flow_packets_per_second",
		.type = RT_METRIC_GAUGE,
		.help = "received packets a second of one of the largest flows, of the last 10 s"},
	{.prometheus = "flow_bits_per_second",
		.type = RT_METRIC_GAUGE,
		.help = "received bits a second of one of the largest flows, of the last 10 s"},
};

struct row {
	char name[LEDGER_TEXT];
	double value[EXPORT_FLOW_METRICS];
};

struct source {
	char *dir;
	struct fates_session s;
	struct flows_request request;
	struct ledger ledger;
	uint32_t interface; /* whose link type is known, and 1 is added */
	uint16_t linktype;
	uint64_t mark_ns, retry_ns; /* CLOCK_MONOTONIC; retry: there is no capture until then */
	bool wanted;
	struct row *rows; /* the last interval's; under the lock */
	unsigned row_count;
};

struct export_flows {
	struct watch *watch;
	unsigned top;
	pthread_t thread;
	pthread_mutex_t lock; /* rows, list, stop */
	struct source **list;
	size_t count;
	bool stop;
};

/* ---- a capture ---- */

static void take(void *ctx, const struct ringtap_packet *p)
{
	struct source *c = ctx;
	struct ringtap_interface i = {.size = sizeof(i)};

	if (c->interface != p->interface + 1) {
		c->interface = p->interface + 1;
		c->linktype =
			ringtap_capture_interface(c->s.cap, p->interface, &i) ? 0 : i.linktype;
	}
	ledger_add(&c->ledger, p, c->linktype);
}

static int attach(struct fates_session *s)
{
	return flows_attach(s, &((struct source *)s->ctx)->request);
}

static void end(struct source *c)
{
	ringtap_packets_free(c->s.walk);
	ringtap_capture_close(c->s.cap);
	c->s.walk = NULL;
	c->s.cap = NULL;
	ledger_free(&c->ledger);
	c->ledger = (struct ledger){.mark = 0};
	c->retry_ns = now_ns(CLOCK_MONOTONIC) + RETRY_NS;
}

static void begin(struct source *c)
{
	struct fates_session *s = &c->s;
	int ret = ringtap_capture_create(&s->cap, NULL);

	c->request = (struct flows_request){.sample = 0};
	c->interface = 0;
	s->over = false;
	if (!ret)
		ret = ringtap_packets_create(&s->walk);
	if (!ret)
		ret = ledger_init(&c->ledger, LEDGER_5_TUPLE, FLOWS_MOST, false);
	if (!ret) {
		ringtap_packets_fields(s->walk, RINGTAP_FIELDS_ALL);
		ret = attach(s);
	}
	if (!ret)
		ret = ringtap_capture_start(s->cap);
	c->mark_ns = now_ns(CLOCK_MONOTONIC);
	if (ret)
		end(c);
}

static struct source *new_source(const struct watched *a)
{
	struct source *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->dir = strdup(a->dir);
	c->s = (struct fates_session){.command = "export",
		.snaplen = SNAPLEN,
		.buffer_size = BUFFER_SIZE,
		.take = take,
		.attach = attach,
		.ctx = c,
		.app = {.name = c->dir, .dir = c->dir}};
	for (size_t i = 0; i < a->port_count && i < ONE_APP_PORTS; i++)
		c->s.app.ports[c->s.app.port_count++] = a->ports[i];
	if (c->dir)
		return c;
	free(c);
	return NULL;
}

static void free_source(struct source *c)
{
	end(c);
	free(c->dir);
	free(c->rows);
	free(c);
}

/* The rows of the interval that ends now. */
static void publish(struct export_flows *f, struct source *c, double seconds)
{
	const struct ledger_flow *top[EXPORT_FLOWS_MAX];
	unsigned n = ledger_top(&c->ledger, LEDGER_BY_BYTES, false, top, f->top);
	struct row *rows = calloc(n + 1, sizeof(*rows));

	for (unsigned i = 0; rows && i < n; i++) {
		const double every = c->request.sample / seconds;

		ledger_text(&c->ledger, &top[i]->key, &c->s, rows[i].name);
		rows[i].value[EXPORT_FLOW_PACKETS] = every * (double)top[i]->recent_packets;
		rows[i].value[EXPORT_FLOW_BITS] = 8 * every * (double)top[i]->recent_bytes;
	}
	ledger_mark(&c->ledger);
	pthread_mutex_lock(&f->lock);
	free(c->rows);
	c->rows = rows;
	c->row_count = rows ? n : 0;
	pthread_mutex_unlock(&f->lock);
}

/* ---- all of them ---- */

static struct source *find(const struct export_flows *f, const char *dir)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->list[i]->dir, dir))
			return f->list[i];
	return NULL;
}

/* Follows the list of the watch, in the thread. */
static void follow(struct export_flows *f)
{
	for (size_t i = 0; i < f->count; i++)
		f->list[i]->wanted = false;
	watch_lock(f->watch);
	for (size_t i = 0; i < f->watch->count; i++) {
		const struct watched *a = f->watch->list[i];
		struct source *c = find(f, a->dir), **slot;

		if (!a->mon || a->ended || a->secondary)
			continue;
		if (!c && (c = new_source(a))) {
			pthread_mutex_lock(&f->lock);
			slot = rt_array_add(f->list, f->count);
			if (slot)
				*slot = c;
			pthread_mutex_unlock(&f->lock);
			if (!slot) {
				free_source(c);
				continue;
			}
		}
		if (c)
			c->wanted = true;
	}
	watch_unlock(f->watch);
	for (size_t i = f->count; i-- > 0;) {
		struct source *c = f->list[i];

		if (c->wanted)
			continue;
		pthread_mutex_lock(&f->lock);
		f->list[i] = f->list[--f->count];
		pthread_mutex_unlock(&f->lock);
		free_source(c);
	}
}

static void step(struct export_flows *f, struct source *c, uint64_t now)
{
	if (!c->s.cap) {
		if (now >= c->retry_ns)
			begin(c);
		return;
	}
	if (fates_take(&c->s, 0)) {
		end(c);
		publish(f, c, 1); /* nothing */
	} else if (now - c->mark_ns >= INTERVAL_NS) {
		const double seconds = (double)(now - c->mark_ns) / NS_PER_S;
		/* An idle application has all packets copied, until packets come. */
		const bool outgrown =
			flows_sample_now(&c->request, c->ledger.all.recent_packets, seconds);

		publish(f, c, seconds);
		c->mark_ns = now;
		if (outgrown) {
			end(c);
			c->retry_ns = 0;
		}
	}
}

static bool stopped(struct export_flows *f)
{
	bool stop;

	pthread_mutex_lock(&f->lock);
	stop = f->stop;
	pthread_mutex_unlock(&f->lock);
	return stop;
}

static void *run(void *ctx)
{
	struct export_flows *f = ctx;

	while (!stopped(f)) {
		follow(f);
		for (size_t i = 0; i < f->count; i++)
			step(f, f->list[i], now_ns(CLOCK_MONOTONIC));
		rt_sleep_ns(TURN_NS);
	}
	return NULL;
}

int export_flows_start(struct export_flows **out, struct watch *w, unsigned top)
{
	struct export_flows *f = *out = calloc(1, sizeof(*f));
	sigset_t all, old;
	int ret;

	if (!f)
		return -ENOMEM;
	f->watch = w;
	f->top = top;
	pthread_mutex_init(&f->lock, NULL);
	/* The main thread handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&f->thread, NULL, run, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		free(f);
		*out = NULL;
	}
	return ret;
}

void export_flows_stop(struct export_flows *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	for (size_t i = 0; i < f->count; i++)
		free_source(f->list[i]);
	free(f->list);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void export_flows_put(struct export_text *t, enum export_flow_metric id, const struct exported *x,
	struct export_flows *f)
{
	const struct source *c;
	char labels[LABELS_LEN];

	pthread_mutex_lock(&f->lock);
	c = find(f, x->app->dir);
	for (unsigned i = 0; c && i < c->row_count && export_takes(t, 1); i++)
		export_number(t, "",
			export_labels(labels, "app", x->label, "flow", c->rows[i].name, NULL),
			c->rows[i].value[id]);
	pthread_mutex_unlock(&f->lock);
}
