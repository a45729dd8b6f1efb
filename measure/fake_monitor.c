/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/util.h"
#include "fake_monitor.h"

struct fake_app fake_apps[FAKE_APPS];
unsigned fake_app_count, fake_monitors;
int fake_search_error;
bool fake_by_user;
static uint64_t begin_ns;

struct ringtap_apps {
	unsigned count;
	unsigned of[FAKE_APPS];
};

struct ringtap_monitor {
	struct fake_app *app;
	int fd;
};

/* ---- what an application does */

static void read_port(
	struct ringtap_port_stats *p, uint64_t real_ns, uint64_t received, uint64_t sent)
{
	p->read_ns = real_ns;
	p->ipackets = received;
	p->ibytes = 64 * received;
	p->opackets = p->tx_before = p->tx_after = sent;
	p->obytes = 64 * sent;
}

static void count_queue(struct ringtap_queue_stats *q, uint64_t bursts, uint64_t empty)
{
	q->burst[0] = empty;
	q->burst[32] = bursts;
	q->polls = bursts + empty;
	q->empty_polls = empty;
	q->packets = q->byte_packets = 32 * bursts;
	q->bytes = 64 * q->packets;
}

void fake_forward(struct fake_app *a, uint64_t ns)
{
	struct fake_stats *s = &a->s;
	uint64_t bursts = ns / 32000, read_ns = ns - ns % FAKE_READING_NS;
	uint64_t real_ns = now_ns(CLOCK_REALTIME) - (ns - read_ns);

	read_port(&s->ports[0], real_ns, 32 * (read_ns / 32000), 0);
	read_port(&s->ports[1], real_ns, 0, 32 * (read_ns / 32000));
	count_queue(&s->queues[0], bursts, bursts);
	count_queue(&s->queues[1], bursts, 0);
	s->threads[0].busy_cycles = s->threads[0].idle_cycles = ns / 2;
	s->threads[0].cpu_ns = read_ns;
	s->threads[0].read_ns = real_ns;
	s->buckets[0][500] = s->pairs[0].count = 32 * bursts;
	s->pairs[0].sum = 7500 * s->pairs[0].count;
	s->pairs[0].min = s->pairs[0].max = 7500;
}

static void make_port(struct ringtap_port_stats *p, const char *name, uint16_t id)
{
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->device, sizeof(p->device), "%s", name);
	snprintf(p->driver, sizeof(p->driver), "net_null");
	p->port_id = id;
	p->link_up = p->used = true;
	p->link_mbps = 10000;
	p->rx_queues = p->tx_queues = 1;
	p->rx_descriptors = p->tx_descriptors = 512;
	p->mtu = 1500;
}

static void make_stats(struct fake_stats *s)
{
	s->snapshot = (struct ringtap_snapshot){.tsc_hz = NS_PER_S,
		.collectors = RINGTAP_POLLS | RINGTAP_BYTES | RINGTAP_BUSY | RINGTAP_GAPS |
			      RINGTAP_LATENCY | RINGTAP_POOLS,
		.latency_every = 1,
		.port_count = 2,
		.thread_count = 1,
		.queue_count = 2,
		.pair_count = 1,
		.pool_count = 1,
		.ring_count = 1};
	make_port(&s->ports[0], "p0", 0);
	make_port(&s->ports[1], "p1", 1);
	s->threads[0] = (struct ringtap_thread_stats){
		.slot = 0, .generation = 1, .alive = true, .lcore = 1, .tid = 4712, .cpu = 1};
	snprintf(s->threads[0].name, sizeof(s->threads[0].name), "dpdk-worker1");
	s->queues[0] = (struct ringtap_queue_stats){.direction = RINGTAP_RX, .max_burst = 32};
	s->queues[1] =
		(struct ringtap_queue_stats){.port = 1, .direction = RINGTAP_TX, .max_burst = 32};
	s->pairs[0] = (struct ringtap_pair_stats){.tx_port = 1};
	for (unsigned i = 0; i < 2; i++)
		s->buckets[i] = calloc(ringtap_latency_buckets(), sizeof(uint64_t));
	s->pools[0] = (struct ringtap_pool_stats){.size = 4095,
		.object_bytes = 2304,
		.buffer_bytes = 2176,
		.page_bytes = 2 << 20,
		.span = 16 << 20,
		.available = 3071,
		.in_caches = 128,
		.lowest = 3000};
	s->rings[0] = (struct ringtap_ring_stats){
		.capacity = 1023, .used = 256, .highest = 1000, .samples = 2, .recent = {256, 700}};
	snprintf(s->rings[0].name, sizeof(s->rings[0].name), "rx_to_worker");
	snprintf(s->pools[0].name, sizeof(s->pools[0].name), "mb_pool_0");
	snprintf(s->pools[0].ops, sizeof(s->pools[0].ops), "ring_mp_mc");
}

struct fake_app *fake_app_add(const char *name)
{
	struct fake_app *a = &fake_apps[fake_app_count];

	if (fake_app_count == FAKE_APPS)
		abort();
	*a = (struct fake_app){.name = name,
		.dir = name,
		.pid = 4711 + fake_app_count,
		.primary = fake_app_count,
		.work = fake_forward};
	make_stats(&a->s);
	fake_app_count++;
	return a;
}

void fake_apps_begin(void)
{
	fake_app_count = 0;
	fake_search_error = 0;
	begin_ns = now_ns(CLOCK_MONOTONIC);
	fake_app_add("app");
}

void fake_apps_end(void)
{
	for (unsigned i = 0; i < fake_app_count; i++)
		for (unsigned k = 0; k < 2; k++)
			free(fake_apps[i].s.buckets[k]);
	fake_app_count = 0;
}

void fake_app_end(void *app)
{
	struct fake_app *a = app;
	const uint64_t one = 1;

	a->read_error = -EPIPE;
	a->absent = true;
	if (a->attached)
		(void)!write(a->fd, &one, sizeof(one));
}

/* ---- instead of the reader's: finding */

int ringtap_apps_search(struct ringtap_apps **out, const struct ringtap_apps_options *opts)
{
	struct ringtap_apps *list = *out = calloc(1, sizeof(*list));

	fake_by_user = opts && opts->users;
	if (fake_search_error || !list) {
		free(list);
		return fake_search_error ? fake_search_error : -ENOMEM;
	}
	for (unsigned i = 0; i < fake_app_count; i++)
		if (!fake_apps[i].absent)
			list->of[list->count++] = i;
	return 0;
}

int ringtap_apps_find(struct ringtap_apps **out)
{
	return ringtap_apps_search(out, NULL);
}

void ringtap_apps_free(struct ringtap_apps *apps)
{
	free(apps);
}

size_t ringtap_apps_count(const struct ringtap_apps *apps)
{
	return apps->count;
}

static const struct fake_app *app_of(const struct ringtap_apps *apps, size_t i)
{
	return &fake_apps[apps->of[i]];
}

const char *ringtap_apps_name(const struct ringtap_apps *apps, size_t i)
{
	return app_of(apps, i)->name;
}

const char *ringtap_apps_dir(const struct ringtap_apps *apps, size_t i)
{
	return app_of(apps, i)->dir;
}

uint32_t ringtap_apps_pid(const struct ringtap_apps *apps, size_t i)
{
	return app_of(apps, i)->pid;
}

bool ringtap_apps_foreign(const struct ringtap_apps *apps, size_t i)
{
	return app_of(apps, i)->foreign;
}

bool ringtap_apps_secondary(const struct ringtap_apps *apps, size_t i)
{
	return app_of(apps, i)->secondary;
}

size_t ringtap_apps_primary(const struct ringtap_apps *apps, size_t i)
{
	for (size_t k = 0; k < apps->count; k++)
		if (apps->of[k] == app_of(apps, i)->primary)
			return k;
	return i;
}

/* ---- instead of the reader's: monitors */

static struct fake_app *app_in(const char *dir)
{
	for (unsigned i = 0; i < fake_app_count; i++)
		if (!strcmp(fake_apps[i].dir, dir))
			return &fake_apps[i];
	return NULL;
}

int ringtap_monitor_open(struct ringtap_monitor **out, const char *dir,
	const struct ringtap_monitor_options *opts, char *err, size_t errlen)
{
	struct fake_app *a = app_in(dir);

	if (a->attempts < sizeof(a->attempt_ns) / sizeof(a->attempt_ns[0]))
		a->attempt_ns[a->attempts] = now_ns(CLOCK_MONOTONIC) - begin_ns;
	a->attempts++;
	a->options = *opts;
	rt_sleep_ns(a->attach_ns);
	snprintf(err, errlen, "%s", a->why ? a->why : "");
	if (a->error) /* one that sleeps is not woken */
		return opts->awake_only ? -EPROTONOSUPPORT : a->error;
	*out = calloc(1, sizeof(**out));
	**out = (struct ringtap_monitor){a, eventfd(0, EFD_CLOEXEC)};
	a->fd = (*out)->fd;
	a->attached = true;
	fake_monitors++;
	return 0;
}

void ringtap_monitor_close(struct ringtap_monitor *mon)
{
	if (!mon)
		return;
	mon->app->attached = false;
	close(mon->fd);
	free(mon);
	fake_monitors--;
}

int ringtap_monitor_switch(struct ringtap_monitor *mon, const struct ringtap_monitor_options *opts,
	char *err, size_t errlen)
{
	mon->app->options = *opts;
	mon->app->switches++;
	snprintf(err, errlen, "%s", mon->app->why ? mon->app->why : "");
	return mon->app->error;
}

int ringtap_monitor_app(const struct ringtap_monitor *mon, struct ringtap_app_info *out)
{
	out->pid = mon->app->pid;
	out->host_pid = mon->app->host_pid;
	snprintf(out->program, sizeof(out->program), "testpmd");
	snprintf(out->dpdk, sizeof(out->dpdk), "DPDK 22.11.5");
	snprintf(out->probe, sizeof(out->probe), "0.1.0");
	return 0;
}

int ringtap_monitor_fd(const struct ringtap_monitor *mon)
{
	return mon->fd;
}

/* ---- instead of the reader's: snapshots */

/* With all that it points to. */
struct copy {
	struct ringtap_snapshot pub; /* first */
	struct fake_stats s;
};

static struct ringtap_snapshot *copy_of(const struct fake_stats *s)
{
	struct copy *c = calloc(1, sizeof(*c));
	const size_t bytes = ringtap_latency_buckets() * sizeof(uint64_t);

	c->s = *s;
	for (unsigned i = 0; i < 2; i++) {
		c->s.threads[i].gaps =
			(struct ringtap_array){c->s.gaps[i], sizeof(c->s.gaps[i][0])};
		c->s.threads[i].microbursts =
			(struct ringtap_array){c->s.microbursts[i], sizeof(c->s.microbursts[i][0])};
		c->s.buckets[i] = malloc(bytes);
		memcpy(c->s.buckets[i], s->buckets[i], bytes);
		c->s.pairs[i].bucket = c->s.buckets[i];
	}
	c->pub = c->s.snapshot;
	c->pub.taken_ns = now_ns(CLOCK_REALTIME);
	c->pub.taken_mono_ns = now_ns(CLOCK_MONOTONIC);
	c->pub.ports = (struct ringtap_array){c->s.ports, sizeof(c->s.ports[0])};
	c->pub.threads = (struct ringtap_array){c->s.threads, sizeof(c->s.threads[0])};
	c->pub.queues = (struct ringtap_array){c->s.queues, sizeof(c->s.queues[0])};
	c->pub.pairs = (struct ringtap_array){c->s.pairs, sizeof(c->s.pairs[0])};
	c->pub.rings = (struct ringtap_array){c->s.rings, sizeof(c->s.rings[0])};
	c->pub.xstats = (struct ringtap_array){c->s.xstats, sizeof(c->s.xstats[0])};
	c->pub.device_stats = (struct ringtap_array){c->s.devices, sizeof(c->s.devices[0])};
	c->pub.lcores = (struct ringtap_array){c->s.lcores, sizeof(c->s.lcores[0])};
	c->pub.pools = (struct ringtap_array){c->s.pools, sizeof(c->s.pools[0])};
	return &c->pub;
}

struct ringtap_snapshot *fake_snapshot(struct fake_app *a, uint64_t ns)
{
	a->work(a, ns);
	return copy_of(&a->s);
}

int ringtap_monitor_read(struct ringtap_monitor *mon, struct ringtap_snapshot **out)
{
	struct fake_app *a = mon->app;

	*out = NULL;
	if (a->read_error == -EBADMSG)
		return a->read_error;
	*out = fake_snapshot(a, now_ns(CLOCK_MONOTONIC) - begin_ns);
	return a->read_error;
}

int ringtap_monitor_intervals(
	struct ringtap_monitor *mon, ringtap_interval_fn fn, void *ctx, uint64_t *lost)
{
	for (unsigned i = 0; i < mon->app->interval_count; i++)
		fn(ctx, &mon->app->intervals[i]);
	*lost += mon->app->intervals_lost;
	mon->app->interval_count = 0;
	mon->app->intervals_lost = 0;
	return 0;
}

void ringtap_snapshot_free(struct ringtap_snapshot *f)
{
	struct copy *c = (struct copy *)f;

	if (!c)
		return;
	free(c->s.buckets[0]);
	free(c->s.buckets[1]);
	free(c);
}
