/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfetto.h"
#include "timeline_page.h"

/* Numbers of fields, and values: https://github.com/google/perfetto, protos/perfetto/. */
enum {
	TRACE_PACKET = 1,

	/* trace/trace_packet.proto, TracePacket */
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	FLAG_CLEARED = 1,
	FLAG_NEEDS_STATE = 2,

	/* trace/trace_packet_defaults.proto */
	DEFAULTS_EVENT = 11,
	DEFAULTS_CLOCK = 58,
	DEFAULTS_EVENT_TRACK = 11,

	/* trace/clock_snapshot.proto, common/builtin_clock.proto */
	CLOCKS_CLOCK = 1,
	CLOCKS_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIME = 2,
	CLOCK_INCREMENTAL = 3,
	CLOCK_REAL = 1,
	CLOCK_BOOT = 6,
	CLOCK_OF_SEQUENCE = 64,

	/* trace/track_event/ track_descriptor.proto, {process,thread,counter}_descriptor.proto */
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	COUNTER_UNIT = 3,
	UNIT_COUNT = 2,

	/* trace/interned_data/interned_data.proto */
	INTERNED_NAMES = 2,
	INTERNED_ARGUMENTS = 3,
	INTERNED_ID = 1,
	INTERNED_TEXT = 2,

	/* trace/track_event/track_event.proto, debug_annotation.proto */
	EVENT_ARGUMENT = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_ID = 10,
	EVENT_NAME = 23,
	EVENT_VALUE = 30,
	EVENT_FLOW = 47,
	ARGUMENT_NAME_ID = 1,
	ARGUMENT_NUMBER = 3,
};

static const char *const argument_names[PERFETTO_ARGUMENTS] = {
	[PERFETTO_PACKETS] = "packets",
	[PERFETTO_BYTES] = "bytes",
	[PERFETTO_LOST_BEFORE] = "lost_before",
	[PERFETTO_TIMED] = "timed",
	[PERFETTO_MEAN_NS] = "latency_mean_ns",
	[PERFETTO_MAX_NS] = "latency_max_ns",
	[PERFETTO_RECEIVED_NS] = "received_ns",
	[PERFETTO_TID] = "tid",
	[PERFETTO_LASTS] = "lasts",
};

/* ---- protocol buffers: https://protobuf.dev/programming-guides/encoding */

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES };

#define MESSAGE_MAX 1024
/* Room for all arguments, the flows, and two names. */
_Static_assert(
	2 * PERFETTO_ARGUMENTS * 32 + PERFETTO_FLOWS * 10 + 2 * PERFETTO_TEXT + 64 <= MESSAGE_MAX,
	"the largest event fits");

struct message {
	uint8_t data[MESSAGE_MAX];
	size_t len;
};

static void put_varint(struct message *m, uint64_t n)
{
	while (n >= 128) {
		m->data[m->len++] = (uint8_t)(n | 128);
		n >>= 7;
	}
	m->data[m->len++] = (uint8_t)n;
}

static void put_number(struct message *m, unsigned field, uint64_t n)
{
	put_varint(m, field << 3 | WIRE_VARINT);
	put_varint(m, n);
}

static void put_fixed(struct message *m, unsigned field, uint64_t n)
{
	put_varint(m, field << 3 | WIRE_64);
	for (unsigned i = 0; i < 8; i++)
		m->data[m->len++] = (uint8_t)(n >> 8 * i);
}

static void put_bytes(struct message *m, unsigned field, const void *data, size_t len)
{
	put_varint(m, field << 3 | WIRE_BYTES);
	put_varint(m, len);
	memcpy(m->data + m->len, data, len);
	m->len += len;
}

static void put_message(struct message *m, unsigned field, const struct message *inner)
{
	put_bytes(m, field, inner->data, inner->len);
}

static void put_text(struct message *m, unsigned field, const char *text)
{
	put_bytes(m, field, text, strnlen(text, PERFETTO_TEXT - 1));
}

static void write_packet(struct perfetto *p, const struct message *packet)
{
	uint8_t head[4] = {TRACE_PACKET << 3 | WIRE_BYTES};
	size_t len = 1, n = packet->len;

	if (!p->f)
		return;
	for (; n >= 128; n >>= 7)
		head[len++] = (uint8_t)(n | 128);
	head[len++] = (uint8_t)n;
	errno = EIO;
	if ((fwrite(head, 1, len, p->f) != len ||
		    fwrite(packet->data, 1, packet->len, p->f) != packet->len) &&
		!p->error)
		p->error = -errno;
	p->bytes += len + packet->len;
}

/* ---- tracks */

/* Traces are merged in one view: their numbers of tracks and arrows must differ. */
static uint64_t unique(const struct perfetto *p, uint64_t number)
{
	return p->start_ns + number;
}

static uint64_t uuid_of(const struct perfetto *p, const struct perfetto_track *t)
{
	return unique(p, t->number);
}

static void put_clock(struct message *m, unsigned id, uint64_t ns, bool incremental)
{
	struct message clock = {.len = 0};

	put_number(&clock, CLOCK_ID, id);
	put_number(&clock, CLOCK_TIME, ns);
	if (incremental)
		put_number(&clock, CLOCK_INCREMENTAL, 1);
	put_message(m, CLOCKS_CLOCK, &clock);
}

/* Defaults of the sequence: its clock, which begins at the trace's start, and its track. */
static void begin_sequence(struct perfetto *p, const struct perfetto_track *t)
{
	struct message packet = {.len = 0}, defaults = {.len = 0}, inner = {.len = 0};

	put_number(&packet, PACKET_SEQUENCE, t->number);
	put_number(&packet, PACKET_FLAGS, FLAG_CLEARED);
	put_number(&defaults, DEFAULTS_CLOCK, CLOCK_OF_SEQUENCE);
	put_number(&inner, DEFAULTS_EVENT_TRACK, uuid_of(p, t));
	put_message(&defaults, DEFAULTS_EVENT, &inner);
	put_message(&packet, PACKET_DEFAULTS, &defaults);
	inner.len = 0;
	put_clock(&inner, CLOCK_OF_SEQUENCE, p->start_ns, true);
	put_clock(&inner, CLOCK_REAL, p->start_ns, false);
	if (p->boot_ns && t->number == 1)
		put_clock(&inner, CLOCK_BOOT, p->boot_ns, false);
	put_number(&inner, CLOCKS_PRIMARY, CLOCK_REAL);
	put_message(&packet, PACKET_CLOCKS, &inner);
	write_packet(p, &packet);
}

static void describe(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_place *at)
{
	struct message packet = {.len = 0}, track = {.len = 0}, inner = {.len = 0};

	put_number(&track, TRACK_UUID, uuid_of(p, t));
	if (at->parent)
		put_number(&track, TRACK_PARENT, uuid_of(p, at->parent));
	if (at->kind == PERFETTO_PROCESS) {
		put_number(&inner, PROCESS_PID, at->pid);
		put_text(&inner, PROCESS_NAME, at->name);
		put_message(&track, TRACK_PROCESS, &inner);
	} else if (at->kind == PERFETTO_THREAD) {
		put_number(&inner, THREAD_PID, at->pid);
		put_number(&inner, THREAD_TID, at->tid);
		put_text(&inner, THREAD_NAME, at->name);
		put_message(&track, TRACK_THREAD, &inner);
	} else {
		put_text(&track, TRACK_NAME, at->name);
	}
	if (at->kind == PERFETTO_COUNTER) {
		put_number(&inner, COUNTER_UNIT, UNIT_COUNT);
		put_message(&track, TRACK_COUNTER, &inner);
	}
	put_number(&packet, PACKET_SEQUENCE, t->number);
	put_message(&packet, PACKET_TRACK, &track);
	write_packet(p, &packet);
}

struct perfetto_track *perfetto_track_new(struct perfetto *p, const struct perfetto_place *at)
{
	struct perfetto_track *t = NULL;

	if (p->tracks < PERFETTO_TRACKS)
		t = calloc(1, sizeof(*t));
	else
		p->beyond++;
	if (!t)
		return NULL;
	if (p->page)
		t->texts = calloc(PERFETTO_NAMES, sizeof(*t->texts));
	t->number = ++p->tracks;
	t->last_ns = p->start_ns;
	begin_sequence(p, t);
	describe(p, t, at);
	if (p->page)
		timeline_page_track(p->page, t->number, at);
	return t;
}

void perfetto_track_free(struct perfetto_track *t)
{
	for (unsigned i = 0; t && t->texts && i < PERFETTO_NAMES; i++)
		free(t->texts[i]);
	if (t) {
		free(t->texts);
		free(t->keys);
	}
	free(t);
}

/* ---- events */

/* The slot of a key, or an empty one where it would be; PERFETTO_NAMES: there is no room. Its
 * number and 1 are the name's. */
static unsigned slot_of(const struct perfetto_track *t, uint64_t key)
{
	unsigned at = (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PERFETTO_NAMES;

	while (t->keys[at] && t->keys[at] != key)
		at = (at + 1) % PERFETTO_NAMES;
	return t->keys[at] || t->names < PERFETTO_NAMES / 2 ? at : PERFETTO_NAMES;
}

bool perfetto_knows(const struct perfetto_track *t, uint64_t key)
{
	unsigned at = t->keys ? slot_of(t, key) : PERFETTO_NAMES;

	return at < PERFETTO_NAMES && t->keys[at];
}

static void intern(struct message *interned, unsigned field, uint64_t id, const char *text)
{
	struct message entry = {.len = 0};

	put_number(&entry, INTERNED_ID, id);
	put_text(&entry, INTERNED_TEXT, text);
	put_message(interned, field, &entry);
}

/* Returns it, for the page. */
static const char *put_name(struct perfetto_track *t, const struct perfetto_event *e,
	struct message *event, struct message *interned)
{
	const char *name = e->name ? e->name : "?";
	unsigned at;

	if (!t->keys)
		t->keys = calloc(PERFETTO_NAMES, sizeof(*t->keys));
	at = t->keys ? slot_of(t, e->key) : PERFETTO_NAMES;
	if (at == PERFETTO_NAMES) {
		put_text(event, EVENT_NAME, name);
		return name;
	}
	if (!t->keys[at]) {
		t->keys[at] = e->key;
		t->names++;
		intern(interned, INTERNED_NAMES, at + 1, name);
		if (t->texts)
			t->texts[at] = strdup(name);
	}
	put_number(event, EVENT_NAME_ID, at + 1);
	return t->texts && t->texts[at] ? t->texts[at] : name;
}

static void put_arguments(struct perfetto_track *t, const struct perfetto_event *e,
	struct message *event, struct message *interned)
{
	for (unsigned i = 0; i < PERFETTO_ARGUMENTS; i++) {
		struct message argument;

		if (!e->has[i])
			continue;
		argument.len = 0; /* the rest is not read */
		if (!(t->arguments & 1u << i))
			intern(interned, INTERNED_ARGUMENTS, i + 1, argument_names[i]);
		t->arguments |= 1u << i;
		put_number(&argument, ARGUMENT_NAME_ID, i + 1);
		put_number(&argument, ARGUMENT_NUMBER, e->args[i]);
		put_message(event, EVENT_ARGUMENT, &argument);
	}
}

void perfetto_put(struct perfetto *p, struct perfetto_track *t, const struct perfetto_event *e)
{
	struct message packet, event, interned; /* not zeroed: a KiB each */
	const char *name = NULL;
	uint64_t ns;

	if (!t)
		return;
	packet.len = event.len = interned.len = 0;
	ns = e->ns > t->last_ns ? e->ns : t->last_ns;
	put_number(&packet, PACKET_TIME, ns - t->last_ns);
	t->last_ns = ns;
	put_number(&packet, PACKET_SEQUENCE, t->number);
	put_number(&packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
	put_number(&event, EVENT_TYPE, e->type);
	if (e->type == PERFETTO_VALUE)
		put_number(&event, EVENT_VALUE, (uint64_t)e->value);
	else if (e->type != PERFETTO_END)
		name = put_name(t, e, &event, &interned);
	put_arguments(t, e, &event, &interned);
	for (unsigned i = 0; i < e->flow_count && i < PERFETTO_FLOWS; i++)
		put_fixed(&event, EVENT_FLOW, unique(p, e->flows[i]));
	put_message(&packet, PACKET_EVENT, &event);
	if (interned.len)
		put_message(&packet, PACKET_INTERNED, &interned);
	write_packet(p, &packet);
	if (p->page)
		timeline_page_put(p->page, t->number, e, ns, name);
}
