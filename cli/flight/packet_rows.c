/* SPDX-License-Identifier: BSD-3-Clause */
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
	struct headers headers;
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

static void put(const struct packet_rows *r, const struct row *p, const struct view *v, json_t *to)
{
	static const char *const directions[] = {"–", "received", "sent"};
	char text[FLOW_TEXT];
	struct flow_key k;

	json_array_append_new(to, json_count(p->frame));
	json_array_append_new(to, view_at(v, p->ns));
	json_array_append_new(
		to, p->local < r->name_count ? json_text(r->name[p->local]) : json_null());
	json_array_append_new(to, json_string(directions[p->direction]));
	json_array_append_new(to, p->queue == NO_QUEUE ? json_null() : json_count(p->queue));
	json_array_append_new(to, json_count(p->length));
	/* With its VLAN, as the table of flows has it. */
	flow_key_of(&k, 0, &p->headers);
	json_array_append_new(to, json_text(k.flags & HAS_IP ? flow_text(&k, text)
							     : headers_text(&p->headers, text)));
}

void packet_rows_view(const struct packet_rows *r, struct view *v)
{
	static const struct {
		const char *name, *kind;
	} columns[] = {{"frame", "frame"}, {"time", "time"}, {"port", "text"},
		{"direction", "text"}, {"queue", "count"}, {"bytes", "count"}, {"packet", "text"}};
	uint64_t kept, shown;
	json_t *table;
	char text[160], a[FORMAT_LEN], b[FORMAT_LEN];

	if (!r || !r->packets)
		return;
	kept = r->before < PACKET_ROWS_MAX ? r->before : PACKET_ROWS_MAX;
	shown = kept + r->after;
	table = view_panel(v, "table", "packets", "Packets");
	if (shown < r->packets) {
		snprintf(text, sizeof(text),
			"%s of %s packets, those nearest to the event; all are in packets.pcapng.",
			format_count(a, shown), format_count(b, r->packets));
		view_panel_note(table, text);
	}
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		view_column(table, columns[i].name, columns[i].kind);
	for (uint64_t i = r->before - kept; i < r->before; i++)
		put(r, &r->row[i % PACKET_ROWS_MAX], v, view_row(table));
	for (uint64_t i = 0; i < r->after; i++)
		put(r, &r->row[PACKET_ROWS_MAX + i], v, view_row(table));
}
