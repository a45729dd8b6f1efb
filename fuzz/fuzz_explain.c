/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is not a recording, or one that was changed: every packet of it that is read is
 * accounted for, in little memory. */
#include <stdint.h>
#include <stdlib.h>

#include "cli/explain/join.h"

#define MEMORY (1u << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	const struct join *j;
	uint64_t fates[FATES];
};

static void hear(void *ctx, const struct outcome *o)
{
	struct seen *s = ctx;
	char text[HEADERS_TEXT];
	struct headers h;

	s->fates[o->fate]++;
	if (!o->rx)
		return;
	join_headers(s->j, o->rx, &h);
	headers_text(&h, text);
}

/* Received packets of recordings with fates have one each; what came before has none. */
static void check_fates(const struct join *j, const struct seen *s)
{
	const struct fate_row *t = &j->fates.total;
	uint64_t sum = 0;

	for (int i = 0; i < KNOWN; i++)
		sum += t->count[i];
	if (sum != t->received || t->received > j->received)
		abort();
	if (s->fates[FATE_NOT_OFFERED] != t->count[KNOWN_NOT_OFFERED] ||
		s->fates[FATE_UNDECIDED] + s->fates[FATE_LIKELY_OFFERED] != t->count[KNOWN_UNKNOWN])
		abort();
}

static void check(const struct join *j, const struct seen *s)
{
	if (j->received != j->sent + j->not_sent + j->open + j->let_go)
		abort();
	if (s->fates[FATE_SENT] != j->sent + j->copies || s->fates[FATE_MADE] != j->made ||
		s->fates[FATE_UNKNOWN] != j->unknown)
		abort();
	if (j->fates.present)
		check_fates(j, s);
	else if (s->fates[FATE_NOT_SENT] != j->not_sent || s->fates[FATE_OPEN] != j->open ||
		 s->fates[FATE_LET_GO] != j->let_go)
		abort();
	for (uint32_t i = 0; i < j->flows.count; i++) {
		char text[HEADERS_TEXT];

		flow_text(flow_table_at(&j->flows, i), text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record r[JOIN_BATCH];
	struct seen seen = {0};
	struct records *b;
	struct window in;
	struct join *j;
	int n;

	if (records_new(&b) || join_new(&j, 1000000, MEMORY))
		abort();
	j->tell = hear;
	j->ctx = &seen;
	seen.j = j;
	window_memory(&in, data, size);
	records_start(b, &in);
	while ((n = records_next(b, r, JOIN_BATCH)) > 0)
		join_records(j, r, n, b);
	if (n < 0 && !records_error(b)[0])
		abort();
	join_end(j);
	check(j, &seen);
	join_free(j);
	records_free(b);
	return 0;
}
