/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --fates: a second capture of the application has an event for each packet that is not offered, or
 * becomes unknown. The main thread keeps the newest ones. An incident is finished some time after
 * its last packet, when most fates are noticed; what the application has then is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "common/array.h"
#include "fates.h"
#include "fates/events.h"
#include "fates/kept.h"
#include "file_counts.h"
#include "flight.h"
#include "passages.h"

#define KEPT     (1u << 21) /* events, 24 bytes each */
#define RUNS_MAX 64
#define NOWHERE  UINT32_MAX
#define LAST_MS  20 /* a step, until what was noticed before is taken */

/* Pools are read twice a second, and more often while packets are open. */
#define NOTICE_NS NS_PER_S

struct flight_fates {
	struct ringtap_capture *cap;
	struct ringtap_packets *walk;
	struct kept_fates kept; /* interfaces are those of cap */
	bool over;              /* no more come */
	int error;              /* -errno: events are missing */
};

/* ---- the capture */

int flight_fates_attach(struct flight *f)
{
	int ret;

	if (!f->cfg->fates)
		return 0;
	f->fates = calloc(1, sizeof(*f->fates));
	if (!f->fates)
		return -ENOMEM;
	ret = kept_fates_init(&f->fates->kept, KEPT);
	if (!ret)
		ret = ringtap_capture_create(&f->fates->cap, NULL);
	if (!ret)
		ret = ringtap_packets_create(&f->fates->walk);
	if (ret)
		return message_fail(ret, "flight: --fates: %s", strerror(-ret));
	return fate_events_attach(
		f->fates->cap, "flight", &f->targets.list[0], &f->capture->options);
}

void flight_fates_start(struct flight *f)
{
	if (f->fates)
		(void)ringtap_capture_start(f->fates->cap); /* the first read reports it */
}

void flight_fates_close(struct flight *f)
{
	if (!f->fates)
		return;
	ringtap_packets_free(f->fates->walk);
	if (f->fates->cap)
		ringtap_capture_close(f->fates->cap);
	kept_fates_free(&f->fates->kept);
	free(f->fates);
	f->fates = NULL;
}

static void keep(struct flight_fates *s, const struct ringtap_packet *p)
{
	const struct rt_fates_packet e =
		fate_entry(p->id, p->ns, p->interface, p->queue, p->fate, p->reason);

	kept_fates_add(&s->kept, &e);
}

static int take_run(struct flight_fates *s, const struct ringtap_run *run)
{
	const struct ringtap_packet *p;

	ringtap_packets_fields(s->walk, RINGTAP_FIELDS_ALL);
	ringtap_packets_start(s->walk, run);
	while ((p = ringtap_packet_next(s->walk)))
		if (p->fate != RINGTAP_FATE_NONE && p->id)
			keep(s, p);
	return ringtap_packets_error(s->walk);
}

static void broken(struct flight_fates *s, int error)
{
	const char *why = ringtap_capture_error(s->cap);

	s->over = true;
	if (error == -EPIPE)
		return;
	s->error = error;
	message_print("flight: reading fates: %s; from here on they are missing",
		*why ? why : strerror(-error));
}

/* A batch; false: there was none. */
static bool take(struct flight_fates *s, int timeout_ms)
{
	struct ringtap_run runs[RUNS_MAX];
	int n = ringtap_capture_next(s->cap, runs, RUNS_MAX, timeout_ms), ret = 0;

	for (int i = 0; i < n && !ret; i++)
		ret = take_run(s, &runs[i]);
	ringtap_capture_release(s->cap);
	if (n < 0 || ret)
		broken(s, n < 0 ? n : ret);
	return n > 0;
}

void flight_fates_take(struct flight *f)
{
	while (f->fates && !f->fates->over && take(f->fates, 0))
		;
}

bool flight_fates_wait(const struct flight *f, const struct incident *i)
{
	return f->fates && !f->fates->over && !i->error &&
	       now_ns(CLOCK_REALTIME) < i->to_ns + NOTICE_NS;
}

/* ---- an incident */

/* Fields of one that are written. */
struct file_fates {
	struct incident *i;
	int fd;
	uint8_t *block;       /* RT_PCAPNG_FATES_MAX */
	uint32_t *interfaces; /* indices in the file, by interface of the capture of fates */
	struct rt_fates_packet *open; /* by id */
	size_t open_count, open_room;
	struct rt_fates_packet batch[RT_FATES_MOST];
	struct fate_texts texts; /* reasons that the file has */
	struct rt_fates_reason reasons[RT_FATES_MOST];
	uint32_t count;
};

int flight_fates_begin_file(struct incident *i)
{
	uint8_t block[64];
	ssize_t n;

	if (!i->f->fates)
		return 0;
	n = rt_pcapng_fates(block, sizeof(block), RT_FATES_BEGIN, i->from_ns, NULL, 0);
	return n < 0 ? (int)n : output_block(&i->file.out, block, (size_t)n);
}

static int put_block(
	struct file_fates *w, enum rt_fates_kind kind, const void *entries, uint32_t count)
{
	ssize_t n = rt_pcapng_fates(
		w->block, RT_PCAPNG_FATES_MAX, kind, now_ns(CLOCK_REALTIME), entries, count);

	return n < 0 ? (int)n : file_append(w->i, w->fd, w->block, (size_t)n);
}

static int flush(struct file_fates *w)
{
	uint32_t texts =
		fate_new_texts(&w->texts, w->i->f->fates->cap, w->batch, w->count, w->reasons);
	int ret = texts ? put_block(w, RT_FATES_REASONS, w->reasons, texts) : 0;

	if (!ret && w->count)
		ret = put_block(w, RT_FATES_PACKETS, w->batch, w->count);
	w->count = 0;
	return ret;
}

static int put(struct file_fates *w, const struct rt_fates_packet *e)
{
	char reason[RINGTAP_NAME_LEN] = "";

	if (e->fate == RT_FATES_NOT_OFFERED && e->why)
		(void)ringtap_capture_reason(w->i->f->fates->cap,
			(uint32_t)(e->id >> RT_FATES_SOURCE_SHIFT), e->why, reason);
	passages_fate(w->i->passages, e, reason);
	w->batch[w->count++] = *e;
	return w->count == RT_FATES_MOST ? flush(w) : 0;
}

/* The newest interface of the file, if a port of this name was replaced. */
static uint32_t find_interface(const struct incident *i, const struct ringtap_interface *of)
{
	uint32_t found = NOWHERE;

	for (uint32_t k = 0; k < i->file.interfaces; k++) {
		struct ringtap_interface info = {.size = sizeof(info)};

		if (ringtap_capture_interface(i->f->cap, k, &info) || !fate_same_port(&info, of))
			continue;
		found = k;
		if (!memcmp(info.mac, of->mac, sizeof(info.mac)))
			break;
	}
	return found;
}

static int find_interfaces(struct file_fates *w)
{
	struct ringtap_capture *cap = w->i->f->fates->cap;
	uint32_t count = ringtap_capture_interface_count(cap);

	w->interfaces = calloc(count + 1, sizeof(*w->interfaces));
	if (!w->interfaces)
		return -ENOMEM;
	for (uint32_t k = 0; k <= count; k++) {
		struct ringtap_interface info = {.size = sizeof(info)};

		w->interfaces[k] = k < count && !ringtap_capture_interface(cap, k, &info)
					   ? find_interface(w->i, &info)
					   : NOWHERE;
	}
	return 0;
}

/* NOWHERE: what this queue receives is not recorded. */
static uint32_t interface_of(const struct file_fates *w, uint32_t interface, uint32_t queue)
{
	const struct flight *f = w->i->f;

	if (interface >= ringtap_capture_interface_count(f->fates->cap) ||
		(f->cfg->queue >= 0 && (uint32_t)f->cfg->queue != queue))
		return NOWHERE;
	return w->interfaces[interface];
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct rt_fates_packet *)a)->id,
		 y = ((const struct rt_fates_packet *)b)->id;

	return (x > y) - (x < y);
}

/* Packets of the window that the application still has, or has freed unnoticed. */
static int read_open(struct file_fates *w, uint64_t walked_ns)
{
	struct ringtap_open_packets *it;
	const struct ringtap_open_packet *p;
	const uint64_t now = now_ns(CLOCK_REALTIME);
	int ret = ringtap_open_packets_create(&it, w->i->f->fates->cap, 0);

	if (ret)
		return ret;
	while (!ret && (p = ringtap_open_packets_next(it))) {
		if (!p->id || p->ns < w->i->from_ns || p->ns > w->i->to_ns ||
			interface_of(w, p->interface, p->queue) == NOWHERE)
			continue;
		ret = rt_array_room(w->open, w->open_room, w->open_count + 1);
		if (!ret)
			w->open[w->open_count++] = fate_entry(p->id, p->free ? walked_ns : now,
				p->interface, p->queue, p->fate, p->reason);
	}
	ringtap_open_packets_free(it);
	qsort(w->open, w->open_count, sizeof(*w->open), by_id);
	return ret;
}

/* Each packet has one: what was noticed after the open ones were read is not open. */
static int put_events(struct file_fates *w)
{
	const struct kept_fates *k = &w->i->f->fates->kept;
	int ret = 0;

	for (uint64_t n = kept_fates_first(k); n < k->count + w->open_count && !ret; n++) {
		struct rt_fates_packet e =
			n < k->count ? *kept_fates_get(k, n) : w->open[n - k->count];
		struct rt_fates_packet *open =
			n < k->count && w->open_count
				? bsearch(&e, w->open, w->open_count, sizeof(e), by_id)
				: NULL;

		if (open)
			open->id = 0;
		e.interface = interface_of(w, e.interface, e.queue);
		if (e.id && e.interface != NOWHERE && fate_noticed_ns(&e) >= w->i->from_ns)
			ret = put(w, &e);
	}
	return ret ? ret : flush(w);
}

static int put_queues(struct file_fates *w, const struct ringtap_fates *fates)
{
	struct flight_fates *s = w->i->f->fates;
	struct rt_fates_queue *queues = calloc(fates->queue_count + 1, sizeof(*queues));
	uint32_t count = 0;
	int ret = queues ? 0 : -ENOMEM;

	for (uint32_t k = 0; k < fates->queue_count && queues; k++) {
		const struct ringtap_fate_queue *q = ringtap_fates_queue(fates, k);
		uint32_t interface = interface_of(w, q->interface, q->queue);

		if (interface == NOWHERE)
			continue;
		queues[count] = fate_queue_entry(s->cap, q, interface);
		queues[count].lost +=
			kept_fates_forgotten(&s->kept, q->interface, q->queue, w->i->from_ns);
		w->i->fates_lost += queues[count++].lost;
	}
	for (uint32_t at = 0; at <= count && !ret; at += RT_FATES_MOST)
		ret = put_block(w, RT_FATES_END, count ? queues + at : NULL,
			count - at < RT_FATES_MOST ? count - at : RT_FATES_MOST);
	free(queues);
	return ret;
}

/* In this order: a packet that moves meanwhile has an event. */
static int write_all(struct file_fates *w)
{
	struct flight_fates *s = w->i->f->fates;
	struct ringtap_fates *fates;
	uint64_t read_ns = now_ns(CLOCK_REALTIME);
	int ret = ringtap_fates_read(s->cap, 0, &fates);

	if (ret)
		return ret;
	ret = find_interfaces(w);
	if (!ret)
		ret = read_open(w, fates->walked_ns);
	while (!ret && !s->over && take(s, LAST_MS) &&
		fate_noticed_ns(kept_fates_get(&s->kept, s->kept.count - 1)) < read_ns)
		;
	if (!ret)
		ret = put_events(w);
	if (!ret && !s->error)
		ret = put_queues(w, fates);
	ringtap_fates_free(fates);
	w->i->followed = !ret && !s->error;
	return ret;
}

int flight_fates_finish(struct incident *i)
{
	struct file_fates *w;
	int ret = -ENOMEM;

	if (!i->f->fates || i->error)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return ret;
	w->i = i;
	w->block = malloc(RT_PCAPNG_FATES_MAX);
	w->fd = open(i->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (w->block)
		ret = w->fd < 0 ? -errno : write_all(w);
	if (w->fd >= 0)
		close(w->fd);
	free(w->open);
	free(w->interfaces);
	free(w->block);
	free(w);
	return ret;
}
