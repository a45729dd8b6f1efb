/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets as batches of columns. */
#ifndef RINGTAP_ARCHIVE_DECODER_ROWS_H
#define RINGTAP_ARCHIVE_DECODER_ROWS_H

#include "batch.h"
#include "row.h"

/* Rows of a batch. The fuzzer has less of this and of the following, to reach their ends. */
#ifndef ROWS_MAX
#define ROWS_MAX (128u << 10)
#endif

extern const struct batch_kind packets_kind;

/* Null columns may keep what was there before. */
void rows_put(struct batch *b, const struct row *r);

#endif
