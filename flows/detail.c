/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "detail.h"
#include "view.h"

/* Names come from applications: a shell must not read more into them. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, f);
	fputc('\'', f);
}

static void put_target(FILE *f, const struct fates_session *s, const char *port)
{
	const char *name = s->app.name;
	char target[2 * RINGTAP_NAME_LEN];

	snprintf(target, sizeof(target), "%s%s%s", name, port ? ":" : "", port ? port : "");
	fputs(" -i ", f);
	if (target[strspn(target, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_.:/-")])
		put_quoted(f, target);
	else
		fputs(target, f);
}

char *flows_record(const struct ledger *t, const struct fates_session *s, const struct flow_key *k)
{
	char *expression = ledger_expression(t, k), *text = NULL;
	size_t len;
	FILE *f = expression ? open_memstream(&text, &len) : NULL;

	if (f) {
		fputs("ringtap record --tags as-is -f ", f);
		put_quoted(f, expression);
		if (!s->app.port_count)
			put_target(f, s, NULL);
		for (unsigned i = 0; i < s->app.port_count; i++)
			put_target(f, s, s->app.ports[i]);
		fputs(" -w flow.pcapng", f);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	free(expression);
	return text;
}

void flows_detail_open(struct flows_detail *d, const struct flow_key *key)
{
	d->open = key != NULL;
	d->count = 0;
	if (key)
		d->key = *key;
}

void flows_detail_take(struct flows_detail *d, const struct ledger *t,
	const struct ringtap_packet *p, uint16_t linktype)
{
	struct detail_packet *to = &d->packets[d->count % DETAIL_PACKETS];

	if (!ledger_belongs(t, p, linktype, &d->key))
		return;
	d->count++;
	to->p = *p;
	to->linktype = linktype;
	if (to->p.caplen > DETAIL_BYTES)
		to->p.caplen = DETAIL_BYTES;
	memcpy(to->bytes, p->data, to->p.caplen);
}

/* Fields of the flow that the table does not have. */
static void put_fields(FILE *f, const struct headers *h)
{
	static const char names[] = "FSRPAUEC"; /* bits of the flags, from the lowest */

	if (h->vlans)
		fprintf(f, ", VLAN %u", h->tci[0] & 4095);
	if (h->vlans > 1)
		fprintf(f, ".%u", h->tci[1] & 4095);
	if (!(h->flags & HAS_IP))
		return;
	if (h->tcp_flags) {
		fputs(", ", f);
		for (unsigned i = 0; i < 8; i++)
			if (h->tcp_flags & 1u << i)
				fputc(names[i], f);
		fprintf(f, " seq %" PRIu32 " payload %u", h->tcp_seq, h->tcp_payload);
	}
	fprintf(f, ", TTL %u", h->ttl);
	if (h->tos >> 2)
		fprintf(f, ", DSCP %u", h->tos >> 2);
}

/* "14:10:03.802282880" */
static void put_time(FILE *f, uint64_t ns)
{
	const time_t seconds = (time_t)(ns / NS_PER_S);
	char when[16];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	fprintf(f, "%s.%09" PRIu64, when, (uint64_t)(ns % NS_PER_S));
}

/* The times of its entry, if that has not been evicted. */
static void put_span(const struct ledger *t, const struct flow_key *k, FILE *f)
{
	const uint32_t index = flow_table_find(&t->table, k);
	const struct ledger_flow *flow;

	if (index == FLOW_NONE)
		return;
	flow = flow_table_at(&t->table, index);
	fputs("\n  first seen ", f);
	put_time(f, flow->first_ns);
	fputs(", last seen ", f);
	put_time(f, flow->last_ns);
	fputc('\n', f);
}

static void put_packet(const struct fates_session *s, const struct detail_packet *d, FILE *f)
{
	const struct ledger_place place = {d->p.interface + 1, d->p.queue};
	char text[LEDGER_TEXT];
	struct headers h, inner;
	uint32_t vni;

	headers_read(&h, d->linktype, d->bytes, d->p.caplen);
	fputs("  ", f);
	put_time(f, d->p.ns);
	fprintf(f, "  %s %s, %u bytes: ", ledger_place_text(&place, s, text),
		d->p.direction == RINGTAP_TX ? "sent" : "received", d->p.length);
	fputs(headers_text(&h, text), f);
	put_fields(f, &h);
	if (headers_inner(&inner, &vni, d->linktype, d->bytes, d->p.caplen)) {
		fprintf(f, "; inside, VNI %u: %s", vni, headers_text(&inner, text));
		put_fields(f, &inner);
	}
	fputc('\n', f);
}

void flows_detail_text(const struct flows_detail *d, const struct ledger *t,
	const struct fates_session *s, bool sample, FILE *f)
{
	const uint64_t n = d->count < DETAIL_PACKETS ? d->count : DETAIL_PACKETS;
	char name[LEDGER_TEXT], count[FORMAT_LEN], *record = flows_record(t, s, &d->key);

	fprintf(f, "%s\n", ledger_text(t, &d->key, s, name));
	if (record)
		fprintf(f, "\n  %s\n", record);
	free(record);
	put_span(t, &d->key, f);
	fprintf(f, "\n  %s packets%s since this was opened, the newest first\n",
		format_count(count, d->count), sample ? " of the sample" : "");
	for (uint64_t i = 1; i <= n; i++)
		put_packet(s, &d->packets[(d->count - i) % DETAIL_PACKETS], f);
}
