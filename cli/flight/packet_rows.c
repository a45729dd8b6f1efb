/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "common/array.h"
#include "packet/flow_key.h"
#include "packet_rows.h"

#define IF_NAME  2 /* pcapng, section 4.2 */
#define NAME_LEN 64

struct row {
	uint64_t frame, ns;
	uint32_t length, queue, local;
	uint8_t direction;
	uint32_t text; /* index of its line */
	struct headers headers;
};

/* The texts of a column, each once. */
struct texts {
	json_t *list, *index;
	size_t bytes; /* in the document */
};

struct packet_rows {
	uint64_t event_ns, packets;
	uint64_t before, after;       /* packets on either side */
	struct row *row;              /* a ring of those before, and behind it those after */
	char (*name)[NAME_LEN];       /* by interface */
	size_t name_count, name_room; /* interfaces */
};

struct packet_rows *packet_rows_new(uint64_t event_ns)
{
	struct packet_rows *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->event_ns = event_ns;
	r->row = calloc(2 * PACKET_ROWS_MAX, sizeof(*r->row));
	if (r->row)
		return r;
	free(r);
	return NULL;
}

void packet_rows_free(struct packet_rows *r)
{
	if (!r)
		return;
	free(r->row);
	free(r->name);
	free(r);
}

void packet_rows_interface(struct packet_rows *r, const struct block *b, bool swapped)
{
	struct rt_pcapng_options o = block_options(b, BLOCK_INTERFACE);

	if (!r || rt_array_room(r->name, r->name_room, r->name_count + 1))
		return;
	snprintf(r->name[r->name_count], NAME_LEN, "interface %u", b->local);
	while (rt_pcapng_option_next(&o, swapped))
		if (o.code == IF_NAME && o.len)
			snprintf(r->name[r->name_count], NAME_LEN, "%.*s", (int)o.len,
				(const char *)o.value);
	r->name_count++;
}

void packet_rows_add(struct packet_rows *r, const struct block *b, const struct headers *h)
{
	struct row *to;

	if (!r)
		return;
	r->packets++;
	if ((uint64_t)b->ns < r->event_ns)
		to = &r->row[r->before++ % PACKET_ROWS_MAX];
	else if (r->after < PACKET_ROWS_MAX)
		to = &r->row[PACKET_ROWS_MAX + r->after++];
	else
		return;
	*to = (struct row){.frame = r->packets,
		.ns = (uint64_t)b->ns,
		.length = b->length,
		.queue = b->queue,
		.local = b->local,
		.direction = b->direction,
		.headers = *h};
}

static uint32_t text_index(struct texts *t, const char *text)
{
	json_t *at = json_object_get(t->index, text);
	size_t n = json_array_size(t->list);

	if (at)
		return (uint32_t)json_integer_value(at);
	json_array_append_new(t->list, json_text(text));
	json_object_set_new_nocheck(t->index, text, json_integer((json_int_t)n));
	t->bytes += strlen(text) + sizeof("\"\",");
	return (uint32_t)n;
}

/* The bytes of a row in the document. */
static size_t describe(struct row *p, const struct view *v, struct texts *lines)
{
	size_t before = lines->bytes;
	char text[FLOW_TEXT], row[128];
	struct flow_key k;

	/* With its VLAN, as the table of flows has it. */
	flow_key_of(&k, 0, &p->headers);
	p->text = text_index(
		lines, k.flags & HAS_IP ? flow_text(&k, text) : headers_text(&p->headers, text));
	return lines->bytes - before +
	       (size_t)snprintf(row, sizeof(row), "[%" PRIu64 ",%" PRId64 ",%u,1,%u,%u,%u],",
		       p->frame, (int64_t)(p->ns - v->origin_ns), p->local, p->queue, p->length,
		       p->text);
}

/* The place in the ring of packet i of those before the event, or from it on. */
static struct row *row_at(const struct packet_rows *r, uint64_t i, bool after)
{
	return &r->row[after ? PACKET_ROWS_MAX + i : i % PACKET_ROWS_MAX];
}

/* How many of either side there is room for, from the event outwards. */
static void choose(const struct packet_rows *r, const struct view *v, struct texts *lines,
	uint64_t *before, uint64_t *after)
{
	uint64_t kept = r->before < PACKET_ROWS_MAX ? r->before : PACKET_ROWS_MAX;
	size_t bytes = 0;

	for (uint64_t k = 0; k < PACKET_ROWS_MAX && bytes < PACKET_ROWS_BYTES; k++) {
		if (k < kept) {
			bytes += describe(row_at(r, r->before - 1 - k, false), v, lines);
			*before = k + 1;
		}
		if (k < r->after) {
			bytes += describe(row_at(r, k, true), v, lines);
			*after = k + 1;
		}
	}
}

static void put(const struct packet_rows *r, const struct row *p, const struct view *v, json_t *to)
{
	json_array_append_new(to, json_count(p->frame));
	json_array_append_new(to, view_at(v, p->ns));
	json_array_append_new(to, p->local < r->name_count ? json_count(p->local) : json_null());
	json_array_append_new(to, json_count(p->direction));
	json_array_append_new(to, p->queue == NO_QUEUE ? json_null() : json_count(p->queue));
	json_array_append_new(to, json_count(p->length));
	json_array_append_new(to, json_count(p->text));
}

/* Cells of this column are indices of texts. */
static void set_texts(json_t *table, unsigned column, json_t *texts)
{
	json_put(json_array_get(json_object_get(table, "columns"), column), "texts", texts);
}

void packet_rows_view(const struct packet_rows *r, struct view *v)
{
	static const struct {
		const char *name, *kind;
	} columns[] = {{"frame", "frame"}, {"time", "time"}, {"port", "text"},
		{"direction", "text"}, {"queue", "count"}, {"bytes", "count"}, {"packet", "text"}};
	struct texts lines;
	uint64_t before = 0, after = 0;
	json_t *table, *names;
	char text[160], a[FORMAT_LEN], b[FORMAT_LEN];

	if (!r || !r->packets)
		return;
	lines = (struct texts){json_array(), json_object(), 0};
	choose(r, v, &lines, &before, &after);
	table = view_panel(v, "table", "packets", "Packets");
	if (before + after < r->packets) {
		snprintf(text, sizeof(text),
			"%s of %s packets, those nearest to the event; all are in packets.pcapng.",
			format_count(a, before + after), format_count(b, r->packets));
		view_panel_note(table, text);
	}
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		view_column(table, columns[i].name, columns[i].kind);
	names = json_array();
	for (size_t i = 0; i < r->name_count; i++)
		json_array_append_new(names, json_text(r->name[i]));
	set_texts(table, 2, names);
	set_texts(table, 3, json_pack("[s, s, s]", "–", "received", "sent"));
	set_texts(table, 6, lines.list);
	for (uint64_t i = r->before - before; i < r->before; i++)
		put(r, row_at(r, i, false), v, view_row(table));
	for (uint64_t i = 0; i < after; i++)
		put(r, row_at(r, i, true), v, view_row(table));
	json_decref(lines.index);
}
