/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "flows.h"
#include "flows/view.h"

/* Names come from applications: a shell must not read more into them. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, f);
	fputc('\'', f);
}

static void put_target(FILE *f, const struct flows_command *c, const char *port)
{
	const char *name = c->view.s.app.name;
	char target[2 * RINGTAP_NAME_LEN];

	snprintf(target, sizeof(target), "%s%s%s", name, port ? ":" : "", port ? port : "");
	fputs(" -i ", f);
	if (target[strspn(target, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_.:/-")])
		put_quoted(f, target);
	else
		fputs(target, f);
}

char *flows_record(const struct flows_command *c, const struct flow_key *k)
{
	char *expression = ledger_expression(&c->ledger, k), *text = NULL;
	size_t len;
	FILE *f = expression ? open_memstream(&text, &len) : NULL;

	if (f) {
		fputs("ringtap record --tags as-is -f ", f);
		put_quoted(f, expression);
		if (!c->view.s.app.port_count)
			put_target(f, c, NULL);
		for (unsigned i = 0; i < c->view.s.app.port_count; i++)
			put_target(f, c, c->view.s.app.ports[i]);
		fputs(" -w flow.pcapng", f);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	free(expression);
	return text;
}

void flows_open(void *ctx, int row)
{
	struct flows_command *c = ctx;
	struct flows_detail *d = &c->detail;

	d->open = row >= 0 && (unsigned)row < c->shown_count;
	d->count = 0;
	if (d->open)
		d->key = c->shown[row];
}

void flows_detail_take(struct flows_command *c, const struct ringtap_packet *p, uint16_t linktype)
{
	struct flows_detail *d = &c->detail;
	struct detail_packet *to = &d->packets[d->count % DETAIL_PACKETS];

	if (!ledger_belongs(&c->ledger, p, linktype, &d->key))
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

static void put_packet(const struct flows_command *c, const struct detail_packet *d, FILE *f)
{
	const struct ledger_place place = {d->p.interface + 1, d->p.queue};
	const time_t seconds = (time_t)(d->p.ns / NS_PER_S);
	char text[LEDGER_TEXT], when[16];
	struct headers h, inner;
	uint32_t vni;
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	headers_read(&h, d->linktype, d->bytes, d->p.caplen);
	fprintf(f, "  %s.%09" PRIu64 "  %s %s, %u bytes: ", when, (uint64_t)(d->p.ns % NS_PER_S),
		ledger_place_text(&place, &c->view.s, text),
		d->p.direction == RINGTAP_TX ? "sent" : "received", d->p.length);
	fputs(headers_text(&h, text), f);
	put_fields(f, &h);
	if (headers_inner(&inner, &vni, d->linktype, d->bytes, d->p.caplen)) {
		fprintf(f, "; inside, VNI %u: %s", vni, headers_text(&inner, text));
		put_fields(f, &inner);
	}
	fputc('\n', f);
}

int flows_detail_text(const struct flows_command *c, FILE *f)
{
	const struct flows_detail *d = &c->detail;
	const uint64_t n = d->count < DETAIL_PACKETS ? d->count : DETAIL_PACKETS;
	char name[LEDGER_TEXT], count[FORMAT_LEN], *record = flows_record(c, &d->key);

	fprintf(f, "%s\n", ledger_text(&c->ledger, &d->key, &c->view.s, name));
	if (record)
		fprintf(f, "\n  %s\n", record);
	free(record);
	fprintf(f, "\n  %s packets%s since this was opened, the newest first\n",
		format_count(count, d->count), c->request.sample > 1 ? " of the sample" : "");
	for (uint64_t i = 1; i <= n; i++)
		put_packet(c, &d->packets[(d->count - i) % DETAIL_PACKETS], f);
	return 0;
}
