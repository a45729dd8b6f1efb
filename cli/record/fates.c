/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --fates: what becomes of recorded packets, in the file. A second capture of the same applications
 * has an event for each packet that is not offered, or becomes unknown, with its id. All their
 * ports are in it, as a packet of one may be offered to any other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "common/array.h"
#include "common/pcapng.h"
#include "fates.h"
#include "fates/events.h"
#include "record.h"

#define RUNS_MAX 64
#define NOWHERE  UINT32_MAX

/* State of a port in the file. */
struct place {
	uint32_t interface; /* NOWHERE: it is not recorded, or what it receives is not */
	int queue;          /* -1: all */
};

struct record_fates {
	struct ringtap_capture *cap;
	struct ringtap_packets *walk;
	struct place *places; /* by interface of cap */
	uint32_t place_count;
	uint32_t file_ifs; /* interfaces of the file, when they were last searched */
	/* Held until their packets are in the file; their interfaces are those of cap. */
	struct rt_fates_packet *events;
	size_t first, count, room;
	uint8_t *block;          /* RT_PCAPNG_FATES_MAX */
	struct fate_texts texts; /* reasons that the file has */
	struct rt_fates_reason reasons[RT_FATES_MOST];
	bool over;                     /* all events were taken */
	bool finishing;                /* all packets are in the file */
	int error;                     /* -errno: events are missing */
	struct rt_fates_queue *queues; /* at the end */
	uint32_t queue_count;
};

/* ---- attaching ---- */

static int create(struct recorder *r)
{
	struct record_fates *f = calloc(1, sizeof(*f));

	r->fates = f;
	if (!f)
		return -ENOMEM;
	f->block = malloc(RT_PCAPNG_FATES_MAX);
	if (!f->block)
		return -ENOMEM;
	return ringtap_capture_create(&f->cap, NULL) ?: ringtap_packets_create(&f->walk);
}

int record_fates_attach(struct recorder *r)
{
	int ret = create(r);

	if (ret)
		message_print("%s: --fates: %s", r->cfg->capture.command, strerror(-ret));
	/* Secondary processes have no fates. */
	for (unsigned i = 0; i < r->targets.named && !ret; i++) {
		ret = fate_events_attach(r->fates->cap, r->cfg->capture.command,
			&r->targets.list[i], &r->cfg->capture.options);
	}
	return ret;
}

/* First: what is recorded shall be followed. The first read fails again and reports it. */
void record_fates_start(struct recorder *r)
{
	if (r->fates)
		(void)ringtap_capture_start(r->fates->cap);
}

void record_fates_free(struct record_fates *f)
{
	if (!f)
		return;
	ringtap_packets_free(f->walk);
	if (f->cap)
		ringtap_capture_close(f->cap);
	free(f->places);
	free(f->events);
	free(f->queues);
	free(f->block);
	free(f);
}

/* ---- interfaces ---- */

/* The newest interface, if a port of this name was replaced. */
static struct place find_place(const struct recorder *r, const struct ringtap_interface *of)
{
	struct place found = {.interface = NOWHERE};

	for (unsigned i = 0; i < r->parts->file.interfaces; i++) {
		struct ringtap_interface info = {.size = sizeof(info)};
		const struct iface_config *cfg;

		if (ringtap_capture_interface(r->cap, i, &info) || !fate_same_port(&info, of))
			continue;
		cfg = targets_iface(&r->targets, &r->cfg->capture, &info);
		found = (struct place){cfg->directions & RINGTAP_RX ? i : NOWHERE, cfg->queue};
		if (!memcmp(info.mac, of->mac, sizeof(info.mac)))
			break;
	}
	return found;
}

/* Ports may appear at any time, in one of the captures before the other. */
static int find_places(struct recorder *r)
{
	struct record_fates *f = r->fates;
	unsigned count = ringtap_capture_interface_count(f->cap);
	struct place *more;

	if (f->place_count == count && f->file_ifs == r->parts->file.interfaces)
		return 0;
	more = reallocarray(f->places, count + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->places = more;
	for (unsigned i = 0; i < count; i++) {
		struct ringtap_interface info = {.size = sizeof(info)};

		more[i] = (struct place){.interface = NOWHERE};
		if (!ringtap_capture_interface(f->cap, i, &info))
			more[i] = find_place(r, &info);
	}
	f->place_count = count;
	f->file_ifs = r->parts->file.interfaces;
	return 0;
}

/* NOWHERE: what this queue receives is not recorded. */
static uint32_t interface_in_file(const struct record_fates *f, uint32_t interface, uint32_t queue)
{
	const struct place *p = &f->places[interface];

	if (interface >= f->place_count || (p->queue >= 0 && (uint32_t)p->queue != queue))
		return NOWHERE;
	return p->interface;
}

/* ---- events ---- */

static int put_block(struct recorder *r, enum rt_fates_kind kind, const void *entries, size_t count)
{
	struct record_fates *f = r->fates;
	uint64_t ns = kind == RT_FATES_BEGIN ? r->start_ns : now_ns(CLOCK_REALTIME);
	ssize_t n =
		rt_pcapng_fates(f->block, RT_PCAPNG_FATES_MAX, kind, ns, entries, (uint32_t)count);

	return n < 0 ? (int)n : output_block(&r->parts->file.out, f->block, (size_t)n);
}

int record_fates_begin_file(struct recorder *r)
{
	if (!r->fates)
		return 0;
	r->fates->texts = (struct fate_texts){0};
	return put_block(r, RT_FATES_BEGIN, NULL, 0);
}

static int hold(struct record_fates *f, const struct rt_fates_packet *e)
{
	int ret = rt_array_room(f->events, f->room, f->count + 1);

	if (!ret)
		f->events[f->count++] = *e;
	return ret;
}

static int note(struct record_fates *f, uint64_t id, uint64_t ns, uint32_t interface,
	uint32_t queue, unsigned fate, uint8_t reason)
{
	const struct rt_fates_packet e = fate_entry(id, ns, interface, queue, fate, reason);

	return id ? hold(f, &e) : 0;
}

static int take_run(struct record_fates *f, const struct ringtap_run *run)
{
	const struct ringtap_packet *p;
	int ret = 0;

	ringtap_packets_fields(f->walk, RINGTAP_FIELDS_ALL);
	ringtap_packets_start(f->walk, run);
	while (!ret && (p = ringtap_packet_next(f->walk)))
		if (p->fate != RINGTAP_FATE_NONE)
			ret = note(f, p->id, p->ns, p->interface, p->queue, p->fate, p->reason);
	return ret ? ret : ringtap_packets_error(f->walk);
}

/* Whether the packet of an event is in the file, if it is at all. */
static bool is_ripe(const struct recorder *r, const struct rt_fates_packet *e)
{
	return ((uint64_t)e->ns_high << 32 | e->ns_low) <= r->emitted_ns;
}

/* The texts of reasons that the file lacks. */
static int put_texts(struct recorder *r, const struct rt_fates_packet *e, size_t n)
{
	struct record_fates *f = r->fates;
	uint32_t count = fate_new_texts(&f->texts, f->cap, e, n, f->reasons);

	return count ? put_block(r, RT_FATES_REASONS, f->reasons, count) : 0;
}

/* Writes those of n events that are of recorded queues, as one block. */
static int put_events(struct recorder *r, struct rt_fates_packet *e, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		e[kept] = e[i];
		e[kept].interface = interface_in_file(r->fates, e[i].interface, e[i].queue);
		kept += e[kept].interface != NOWHERE;
	}
	return kept ? put_texts(r, e, kept) ?: put_block(r, RT_FATES_PACKETS, e, kept) : 0;
}

/* all: no more packets come. Sizes of files are those of packets: fates come on top. */
static int write_events(struct recorder *r, bool all)
{
	struct record_fates *f = r->fates;
	int ret = find_places(r);

	while (f->first < f->count && !ret) {
		size_t n = 0, left = f->count - f->first;

		while (n < left && n < RT_FATES_MOST &&
			(all || is_ripe(r, &f->events[f->first + n])))
			n++;
		if (!n)
			return 0;
		ret = put_events(r, &f->events[f->first], n);
		f->first += n;
	}
	f->first = f->count = 0;
	return ret;
}

static void broken(struct recorder *r, int error)
{
	struct record_fates *f = r->fates;
	const char *why = ringtap_capture_error(f->cap);

	f->over = true;
	if (error == -EPIPE)
		return;
	f->error = error;
	message_print("%s: reading fates: %s; from here on they are missing",
		r->cfg->capture.command, *why ? why : strerror(-error));
}

/* A batch. Returns whether there was one; *error: of the output. */
static bool take(struct recorder *r, int timeout_ms, int *error)
{
	struct record_fates *f = r->fates;
	struct ringtap_run runs[RUNS_MAX];
	int n = ringtap_capture_next(f->cap, runs, RUNS_MAX, timeout_ms), ret = 0;

	for (int i = 0; i < n && !ret; i++)
		ret = take_run(f, &runs[i]);
	ringtap_capture_release(f->cap);
	if (n < 0 || ret)
		broken(r, n < 0 ? n : ret);
	*error = write_events(r, f->finishing);
	return n > 0;
}

/* Held events stay behind the packets: no more are taken meanwhile, and the ring has the rest. */
int record_fates_take(struct recorder *r)
{
	int ret;

	if (!r->fates || r->fates->over || !r->parts->file.out.sink)
		return 0;
	ret = write_events(r, false);
	while (!ret && !r->fates->count && !r->fates->over && take(r, 0, &ret))
		;
	return ret;
}

/* ---- the end ---- */

static int put_open(struct recorder *r, uint32_t app, uint64_t walked_ns)
{
	struct ringtap_open_packets *it;
	const struct ringtap_open_packet *p;
	const uint64_t now = now_ns(CLOCK_REALTIME);
	int ret = ringtap_open_packets_create(&it, r->fates->cap, app);

	if (ret) {
		broken(r, ret);
		return 0;
	}
	while (!ret && (p = ringtap_open_packets_next(it))) {
		ret = note(r->fates, p->id, p->free ? walked_ns : now, p->interface, p->queue,
			p->fate, p->reason);
		if (!ret && r->fates->count == RT_FATES_MOST)
			ret = write_events(r, true);
	}
	ringtap_open_packets_free(it);
	return ret;
}

static int add_queue(struct recorder *r, const struct ringtap_fate_queue *q)
{
	struct record_fates *f = r->fates;
	uint32_t interface = interface_in_file(f, q->interface, q->queue);
	struct rt_fates_queue *new;

	if (interface == NOWHERE)
		return 0;
	new = rt_array_add(f->queues, f->queue_count);
	if (!new)
		return -ENOMEM;
	*new = fate_queue_entry(f->cap, q, interface);
	return 0;
}

static int put_application(struct recorder *r, uint32_t app)
{
	struct ringtap_fates *fates;
	int ret = ringtap_fates_read(r->fates->cap, app, &fates);

	if (ret) {
		broken(r, ret);
		return 0;
	}
	ret = put_open(r, app, fates->walked_ns);
	for (uint32_t i = 0; i < fates->queue_count && !ret; i++)
		ret = add_queue(r, ringtap_fates_queue(fates, i));
	ringtap_fates_free(fates);
	return ret;
}

int record_fates_finish(struct recorder *r)
{
	struct record_fates *f = r->fates;
	int ret = 0;

	if (!f || !r->parts->file.out.sink || f->error)
		return 0;
	f->finishing = true;
	if (!f->over)
		(void)ringtap_capture_stop(f->cap); /* the next call reports it */
	while (!f->over && !ret)
		(void)take(r, -1, &ret);
	ret = ret ?: find_places(r);
	for (uint32_t i = 0; i < r->targets.named && !ret && !f->error; i++)
		ret = put_application(r, i);
	ret = ret ?: write_events(r, true);
	for (uint32_t at = 0; at <= f->queue_count && !ret && !f->error; at += RT_FATES_MOST) {
		uint32_t left = f->queue_count - at;

		ret = put_block(r, RT_FATES_END, f->queues ? f->queues + at : NULL,
			left < RT_FATES_MOST ? left : RT_FATES_MOST);
	}
	return ret;
}

bool record_fates_total(const struct recorder *r, struct rt_fates_queue *sum)
{
	*sum = (struct rt_fates_queue){0};
	for (uint32_t i = 0; r->fates && i < r->fates->queue_count; i++) {
		const struct rt_fates_queue *q = &r->fates->queues[i];

		sum->received += q->received;
		sum->offered += q->offered;
		sum->not_offered += q->not_offered;
		sum->open += q->open;
		sum->unknown += q->unknown;
		sum->inferred += q->inferred;
		sum->lost += q->lost;
	}
	return r->fates && r->fates->queue_count;
}
