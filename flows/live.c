/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "capture.h"
#include "common/array.h"
#include "common/threads.h"
#include "detail.h"
#include "live.h"
#include "target/counts.h"

#define SNAPLEN     128 /* bytes: headers, with tags and options */
#define BUFFER_SIZE (16u << 20)
#define FLOWS_MOST  (1u << 16)
#define TURN_NS     (NS_PER_S / 20)
#define RETRY_NS    (10 * NS_PER_S)

struct source {
	char *name, *dir;
	struct fates_session s;
	struct flows_request request;
	struct ledger ledger;
	uint32_t interface; /* whose link type is known, and 1 is added */
	uint16_t linktype;
	/* Packets that wait to be counted. */
	struct ringtap_packet batch[LEDGER_BATCH];
	uint16_t batch_types[LEDGER_BATCH];
	unsigned waiting;
	uint64_t mark_ns, retry_ns; /* CLOCK_MONOTONIC; retry: there is no capture until then */
	uint64_t lost;              /* at the mark */
	bool wanted;
	struct flows_detail detail;
	/* Under the lock. */
	struct flow_rows rows;
	bool opens; /* the flow of this key is to be open */
	struct flow_key key;
};

struct flows_live {
	struct flows_live_options options;
	pthread_t thread;
	pthread_mutex_t lock; /* rows, list, stop, wanted */
	struct source **list;
	size_t count;
	bool stop, wanted;
};

/* ---- a capture ---- */

static void count(void *ctx)
{
	struct source *c = ctx;
	bool counted[LEDGER_BATCH];

	ledger_add_batch(&c->ledger, c->batch, c->batch_types, c->waiting, counted);
	c->waiting = 0;
}

static void take(void *ctx, const struct ringtap_packet *p)
{
	struct source *c = ctx;
	struct ringtap_interface i = {.size = sizeof(i)};

	if (c->interface != p->interface + 1) {
		c->interface = p->interface + 1;
		c->linktype =
			ringtap_capture_interface(c->s.cap, p->interface, &i) ? 0 : i.linktype;
	}
	if (c->detail.open)
		flows_detail_take(&c->detail, &c->ledger, p, c->linktype);
	c->batch[c->waiting] = *p;
	c->batch_types[c->waiting] = c->linktype;
	if (++c->waiting == LEDGER_BATCH)
		count(c);
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
	c->waiting = 0;
	ledger_free(&c->ledger);
	c->ledger = (struct ledger){.mark = 0};
	c->retry_ns = now_ns(CLOCK_MONOTONIC) + RETRY_NS;
}

/* Returns 0, or -errno; why, of 256 bytes, then becomes a sentence. */
static int begin(struct source *c, char *why)
{
	struct fates_session *s = &c->s;
	int ret = ringtap_capture_create(&s->cap, NULL);

	c->request = (struct flows_request){.sample = 0};
	c->interface = 0;
	c->lost = 0;
	c->detail.open = false; /* its packets name interfaces of the capture before */
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
	if (ret) {
		const char *text = s->cap ? ringtap_capture_error(s->cap) : "";

		snprintf(why, 256, "%s", *text ? text : strerror(-ret));
		end(c);
	}
	return ret;
}

static void free_source(struct source *c)
{
	end(c);
	free(c->name);
	free(c->dir);
	free(c->rows.list);
	free(c->rows.detail);
	free(c);
}

static struct source *new_source(const struct flows_live *f, const struct watched *a)
{
	struct source *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->name = strdup(a->name);
	c->dir = strdup(a->dir);
	c->s = (struct fates_session){.command = f->options.command,
		.snaplen = SNAPLEN,
		.buffer_size = BUFFER_SIZE,
		.take = take,
		.release = count,
		.attach = attach,
		.ctx = c,
		.app = {.name = c->name, .dir = c->dir}};
	for (size_t i = 0; i < a->port_count && i < ONE_APP_PORTS; i++)
		c->s.app.ports[c->s.app.port_count++] = a->ports[i];
	if (c->name && c->dir)
		return c;
	free_source(c);
	return NULL;
}

/* ---- rows ---- */

static void make_row(
	struct flow_row *r, const struct source *c, const struct ledger_flow *f, double seconds)
{
	const uint32_t every = c->request.sample;
	const uint64_t n = f->recent_packets;

	r->key = f->key;
	ledger_text(&c->ledger, &f->key, &c->s, r->name);
	ledger_place_text(&f->in, &c->s, r->place);
	r->packets = estimate_packets(every, n);
	r->bits = estimate_sum(every, n, (double)f->recent_bytes, f->recent_squares);
	r->packets.value /= seconds;
	r->packets.bound /= seconds;
	r->bits.value *= 8 / seconds;
	r->bits.bound *= 8 / seconds;
	r->share = estimate_share(every, n, c->ledger.all.recent_packets);
	r->mean = estimate_mean(every, n, (double)f->recent_bytes, f->recent_squares);
}

static void put_rows(struct flows_live *f, struct source *c, struct flow_rows rows)
{
	pthread_mutex_lock(&f->lock);
	free(c->rows.list);
	free(c->rows.detail);
	c->rows = rows;
	if (rows.detail && !(c->opens && flow_key_equal(&c->key, &c->detail.key))) {
		free(rows.detail); /* another flow has been opened meanwhile */
		c->rows.detail = NULL;
	}
	pthread_mutex_unlock(&f->lock);
}

static char *detail_text(const struct source *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = c->detail.open ? open_memstream(&text, &len) : NULL;

	if (!f)
		return NULL;
	flows_detail_text(&c->detail, &c->ledger, &c->s, c->request.sample > 1, f);
	fclose(f);
	return text;
}

/* Opens what flows_live_open() has chosen. */
static void follow_open(struct flows_live *f, struct source *c)
{
	struct flow_key key;
	bool opens;

	pthread_mutex_lock(&f->lock);
	opens = c->opens;
	key = c->key;
	pthread_mutex_unlock(&f->lock);
	if (opens != c->detail.open || (opens && !flow_key_equal(&key, &c->detail.key)))
		flows_detail_open(&c->detail, opens ? &key : NULL);
}

/* The rows of the interval that ends now. */
static void publish(struct flows_live *f, struct source *c, double seconds)
{
	const struct ledger_flow *top[FLOWS_LIVE_MAX];
	unsigned n = ledger_top(&c->ledger, LEDGER_BY_BYTES, false, top, f->options.top);
	struct flow_row *list = calloc(n + 1, sizeof(*list));
	struct ringtap_stats stats = {.size = sizeof(stats)};
	struct flow_rows rows = {
		.sample = c->request.sample, .list = list, .detail = detail_text(c)};

	for (unsigned i = 0; list && i < n; i++)
		make_row(&list[rows.count++], c, top[i], seconds);
	if (!ringtap_capture_stats(c->s.cap, &stats)) {
		const uint64_t lost = counts_lost(&stats.total);

		rows.lost = lost - c->lost;
		c->lost = lost;
	}
	ledger_mark(&c->ledger);
	put_rows(f, c, rows);
}

/* ---- all of them ---- */

static struct source *find(const struct flows_live *f, const char *dir)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->list[i]->dir, dir))
			return f->list[i];
	return NULL;
}

/* Adds an application that is new. */
static void follow_one(struct flows_live *f, const struct watched *a)
{
	struct source *c = find(f, a->dir), **slot;

	if (!c && (c = new_source(f, a))) {
		pthread_mutex_lock(&f->lock);
		slot = rt_array_add(f->list, f->count);
		if (slot)
			*slot = c;
		pthread_mutex_unlock(&f->lock);
		if (!slot) {
			free_source(c);
			return;
		}
	}
	if (c)
		c->wanted = true;
}

/* Follows the list of the watch, in the thread. */
static void follow(struct flows_live *f, bool wanted)
{
	struct watch *w = f->options.watch;

	for (size_t i = 0; i < f->count; i++)
		f->list[i]->wanted = false;
	watch_lock(w);
	for (size_t i = 0; wanted && i < w->count; i++)
		if (w->list[i]->mon && !w->list[i]->ended && !w->list[i]->secondary)
			follow_one(f, w->list[i]);
	watch_unlock(w);
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

/* Takes what is there, but not for longer than a turn. True: the capture is over. */
static bool drain(struct source *c, uint64_t now)
{
	uint64_t before;

	do {
		before = c->ledger.all.packets;
		if (fates_take(&c->s, 0))
			return true;
	} while (c->ledger.all.packets != before && now_ns(CLOCK_MONOTONIC) - now < TURN_NS);
	return false;
}

static void step(struct flows_live *f, struct source *c, uint64_t now)
{
	if (!c->s.cap) {
		struct flow_rows rows = {.count = 0};

		if (now >= c->retry_ns && begin(c, rows.why))
			put_rows(f, c, rows);
		return;
	}
	follow_open(f, c);
	if (drain(c, now)) {
		end(c);
		put_rows(f, c, (struct flow_rows){.count = 0});
	} else if (now - c->mark_ns >= f->options.interval_ns) {
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

static bool go_on(struct flows_live *f, bool *wanted)
{
	bool stop;

	pthread_mutex_lock(&f->lock);
	stop = f->stop;
	*wanted = f->wanted;
	pthread_mutex_unlock(&f->lock);
	return !stop;
}

static void *run(void *ctx)
{
	struct flows_live *f = ctx;
	bool wanted;

	while (go_on(f, &wanted)) {
		follow(f, wanted);
		for (size_t i = 0; i < f->count; i++)
			step(f, f->list[i], now_ns(CLOCK_MONOTONIC));
		rt_sleep_ns(TURN_NS);
	}
	return NULL;
}

int flows_live_start(struct flows_live **out, const struct flows_live_options *o)
{
	struct flows_live *f = *out = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return -ENOMEM;
	f->options = *o;
	f->wanted = true;
	pthread_mutex_init(&f->lock, NULL);
	ret = rt_thread_start(&f->thread, run, f);
	if (ret) {
		free(f);
		*out = NULL;
	}
	return ret;
}

void flows_live_want(struct flows_live *f, bool wanted)
{
	pthread_mutex_lock(&f->lock);
	f->wanted = wanted;
	pthread_mutex_unlock(&f->lock);
}

void flows_live_stop(struct flows_live *f)
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

const struct flow_rows *flows_live_rows(struct flows_live *f, const char *dir)
{
	const struct source *c;

	pthread_mutex_lock(&f->lock);
	c = find(f, dir);
	return c ? &c->rows : NULL;
}

bool flows_live_open(struct flows_live *f, const char *dir, const char *name)
{
	bool found = false;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->count; i++) {
		struct source *c = f->list[i];

		c->opens = false;
		for (unsigned k = 0; name && !found && k < c->rows.count; k++) {
			if (strcmp(c->dir, dir) || strcmp(c->rows.list[k].name, name))
				continue;
			found = c->opens = true;
			c->key = c->rows.list[k].key;
		}
		free(c->rows.detail);
		c->rows.detail = NULL;
	}
	pthread_mutex_unlock(&f->lock);
	return found;
}

void flows_live_release(struct flows_live *f)
{
	pthread_mutex_unlock(&f->lock);
}
