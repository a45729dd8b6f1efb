/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows in the order of their flows, and in a flow first those of one direction, then those of the
 * other, each in the order of the file. So columns that a flow's packets share are runs of equal
 * values, sequence numbers increase, and a flow is looked up once for all its rows.
 */
#ifndef RINGTAP_ARCHIVE_DECODER_SORTED_H
#define RINGTAP_ARCHIVE_DECODER_SORTED_H

#include "flows.h"
#include "rows.h"

/* Rows that are sorted at a time. */
#ifndef SORTED_MAX
#define SORTED_MAX (256u << 10)
#endif

extern const struct batch_kind sorted_kind;

struct sorted {
	struct placed *rows; /* in the order of the file; NULL: rows are not sorted */
	uint64_t *key;       /* order of a row << 32 | its number */
	uint64_t *other;     /* as many, for sorting */
	uint32_t count;
	struct flows *flows; /* takes the rows' packets when they are sorted; NULL: does not */
};

/* 0 or -ENOMEM. Close it in any case. */
int sorted_open(struct sorted *s);
void sorted_close(struct sorted *s);
/* Place of the next row; there is one while count is less than SORTED_MAX. */
struct row *sorted_next(struct sorted *s);
/* Takes the row that was written there. */
void sorted_add(struct sorted *s);
/* Gives flows the packets of the rows so far, in the order of the file, and none that follow. */
int sorted_settle(struct sorted *s);
/* Moves all rows to the batch, without columns that lean indexes lack. 0 or -errno. */
int sorted_put(struct sorted *s, struct batch *b, bool lean);

#endif
