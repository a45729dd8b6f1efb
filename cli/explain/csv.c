/* SPDX-License-Identifier: BSD-3-Clause */
/* A line for each sending of a packet, and for each packet that was not sent. */
#include <inttypes.h>
#include <string.h>

#include "csv.h"

void csv_begin(struct csv *c)
{
	fputs("fate,id,rx_frame,rx_ns,rx_port,rx_queue,rx_length,tx_frame,tx_ns,tx_port,tx_queue,"
	      "tx_length,latency_ns,copy,reordered,changes,flow,noticed_ns,reason\n",
		c->f);
}

/* A name may hold what CSV is made of. */
static void put_text(FILE *f, const char *text)
{
	if (!strpbrk(text, ",\"")) {
		fputs(text, f);
		return;
	}
	putc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', f);
		putc(*text, f);
	}
	putc('"', f);
}

static void put_number(FILE *f, uint64_t v)
{
	char text[24], *at = text + sizeof(text);

	*--at = '\0';
	do
		*--at = (char)('0' + v % 10);
	while (v /= 10);
	fputs(at, f);
}

static void put_next(FILE *f, uint64_t v)
{
	putc(',', f);
	put_number(f, v);
}

static void put_place(const struct csv *c, uint32_t port, uint32_t queue, uint32_t length)
{
	putc(',', c->f);
	put_text(c->f, records_port(c->records, port)->shown);
	putc(',', c->f);
	if (queue < UINT16_MAX)
		put_number(c->f, queue);
	put_next(c->f, length);
}

static void put_received(const struct csv *c, const struct waiting *w)
{
	if (!w) {
		fputs(",,,,,", c->f);
		return;
	}
	put_next(c->f, w->number);
	put_next(c->f, w->ns);
	put_place(c, w->port, w->queue, w->length);
}

static void put_sent(const struct csv *c, const struct record *r)
{
	if (!r) {
		fputs(",,,,,", c->f);
		return;
	}
	put_next(c->f, r->number);
	put_next(c->f, r->ns);
	put_place(c, r->port, r->queue, r->length);
}

static void put_changes(FILE *f, uint32_t bits)
{
	const char *between = "";

	putc(',', f);
	for (; bits; bits &= bits - 1) {
		fprintf(f, "%s%s", between, change_keys[__builtin_ctz(bits)]);
		between = " ";
	}
}

void csv_line(void *csv, const struct outcome *o)
{
	const struct csv *c = csv;
	uint64_t id = o->rx ? o->rx->id : o->tx->id;
	char text[HEADERS_TEXT];

	fputs(fate_keys[o->fate], c->f);
	putc(',', c->f);
	if (id)
		put_number(c->f, id);
	put_received(c, o->rx);
	put_sent(c, o->tx);
	if (o->fate == FATE_SENT) {
		put_next(c->f, o->latency_ns);
		put_next(c->f, o->rx->sent - 1);
		fputs(o->reordered ? ",1" : ",0", c->f);
		put_changes(c->f, o->changes);
	} else {
		fputs(",,,,", c->f);
	}
	putc(',', c->f);
	if (o->rx && o->rx->flow != FLOW_NONE)
		put_text(c->f, flow_text(&joined_flow_at(c->flows, o->rx->flow)->key, text));
	putc(',', c->f);
	if (o->noticed_ns)
		put_number(c->f, o->noticed_ns);
	putc(',', c->f);
	put_text(c->f, o->reason ? o->reason : "");
	putc('\n', c->f);
}
