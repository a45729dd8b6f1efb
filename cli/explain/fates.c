/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/pcapng.h"
#include "fates.h"

void known_init(struct known_fates *f)
{
	f->rows.size = sizeof(struct fate_row);
	f->refused.size = sizeof(struct protocol);
}

void known_free(struct known_fates *f)
{
	keyed_free(&f->rows);
	keyed_free(&f->refused);
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

static void refuse(struct known_fates *f, const struct waiting *w, uint64_t noticed_ns)
{
	f->sizes[size_class(w->length)]++;
	spread_add(&f->noticed, noticed_ns > w->ns ? noticed_ns - w->ns : 0);
	f->no_room += !protocol_count(&f->refused, w);
}

void known_count(
	struct known_fates *f, const struct waiting *w, enum known known, uint64_t noticed_ns)
{
	struct fate_row *row = row_of(f, w);

	count_in(&f->total, w, known);
	if (row)
		count_in(row, w, known);
	if (known == KNOWN_NOT_OFFERED)
		refuse(f, w, noticed_ns);
}
