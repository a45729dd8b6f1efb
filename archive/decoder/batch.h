/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of columns of fixed width that is filled row by row, and then handed over as an Arrow
 * array without copying. Columns are described by a table, of which the schema is made as well.
 */
#ifndef RINGTAP_ARCHIVE_DECODER_BATCH_H
#define RINGTAP_ARCHIVE_DECODER_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "arrow.h"
#include "pool.h"

#define BATCH_COLUMNS 32u /* at most: bits of a row's mask */

struct column_kind {
	const char *name;
	const char *format; /* Arrow's format; for dictionaries that of the index */
	uint8_t width;      /* bytes */
	bool required;      /* never null */
	uint8_t words;      /* entries of the dictionary; 0: none */
	const char *const *word;
};

struct batch_kind {
	const struct column_kind *columns;
	uint32_t count; /* at most BATCH_COLUMNS */
	uint32_t rows;  /* that a batch can have, a multiple of 64 */
};

struct batch {
	const struct batch_kind *kind;
	struct pool *pool;
	uint32_t rows;
	uint32_t has[32]; /* masks of the rows since the last multiple of 32 */
	uint32_t nulls[BATCH_COLUMNS];
	uint8_t *column[BATCH_COLUMNS];
	uint32_t *valid[BATCH_COLUMNS]; /* bitmaps */
	struct exported *exported;
};

/* Bytes that the pool's pieces must have. */
size_t batch_size(const struct batch_kind *k);
/* NULL: no memory. The batch lies in the pool's piece. */
struct batch *batch_new(const struct batch_kind *k, struct pool *pool);
/* For a batch that was not handed over. */
void batch_free(struct batch *b);
/* Writes the validity of the last 32 rows. */
void batch_flush(struct batch *b);
/* Hands the batch over: it is the caller's. */
void batch_export(struct batch *b, struct ArrowArray *out);
/* 0 or -ENOMEM. */
int batch_schema(const struct batch_kind *k, struct ArrowSchema *out);

/* Ends a row with all columns written; has: those that are not null. */
static inline void batch_add(struct batch *b, uint32_t has)
{
	b->has[b->rows % 32] = has;
	if (++b->rows % 32 == 0)
		batch_flush(b);
}

#endif
