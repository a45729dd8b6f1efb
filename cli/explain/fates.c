/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "fates.h"

void known_init(struct known_fates *f)
{
	f->rows.size = sizeof(struct fate_row);
	f->refused.size = sizeof(struct protocol);
	f->reasons.size = sizeof(struct fate_reason);
}

void known_free(struct known_fates *f)
{
	keyed_free(&f->rows);
	keyed_free(&f->refused);
	keyed_free(&f->reasons);
}

void known_name_reason(
	struct known_fates *f, unsigned source, uint8_t number, const char *text, size_t len)
{
	char clean[sizeof(((struct fate_reason *)0)->text)] = "";
	uint64_t key = 0xcbf29ce484222325ull; /* FNV-1a */
	struct fate_reason *reason;

	for (size_t i = 0; i < len && i < sizeof(clean) - 1 && text[i]; i++) {
		clean[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
		key = (key ^ (uint8_t)clean[i]) * 0x100000001b3ull;
	}
	key |= 1;
	reason = keyed_get(&f->reasons, key);
	if (reason)
		memcpy(reason->text, clean, sizeof(clean));
	f->reason_keys[source % FATE_SOURCES][number] = reason ? key : 0;
}

const char *known_count_reason(struct known_fates *f, uint64_t id, uint8_t number)
{
	unsigned source = (unsigned)(id >> RT_FATES_SOURCE_SHIFT);
	struct fate_reason *reason;

	if (!number)
		return NULL;
	if (!f->reason_keys[source][number])
		known_name_reason(f, source, number, "?", 1);
	reason = keyed_get(&f->reasons, f->reason_keys[source][number]);
	if (!reason)
		return NULL;
	reason->packets++;
	return reason->text;
}

static struct fate_row *row_of(struct known_fates *f, const struct waiting *w)
{
	struct fate_row *row = keyed_get(&f->rows, (uint64_t)w->port << 16 | w->queue);

	if (row) {
		row->port = w->port;
		row->queue = w->queue;
	}
	return row;
}

void known_receive(struct known_fates *f, const struct waiting *w)
{
	struct fate_row *row = row_of(f, w);

	f->total.received++;
	if (row)
		row->received++;
	else
		f->no_room++;
}

static void count_in(struct fate_row *row, const struct waiting *w, enum known known)
{
	row->count[known]++;
	row->likely += w->fate == RT_FATES_INFERRED;
	row->unseen += w->why == RT_FATES_WHY_UNSEEN;
	row->stopped += w->why == RT_FATES_WHY_STOPPED;
}

void known_count(struct known_fates *f, const struct waiting *w, enum known known)
{
	struct fate_row *row = row_of(f, w);

	count_in(&f->total, w, known);
	if (row)
		count_in(row, w, known);
}

void known_refuse(struct known_fates *f, const struct waiting *w, const struct headers *h,
	uint64_t noticed_ns)
{
	known_count(f, w, KNOWN_NOT_OFFERED);
	f->sizes[size_class(w->length)]++;
	spread_add(&f->noticed, noticed_ns > w->ns ? noticed_ns - w->ns : 0);
	f->no_room += !protocol_count(&f->refused, w, h);
}
