/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows as batches of columns. */
#ifndef RINGTAP_ARCHIVE_DECODER_FLOW_ROWS_H
#define RINGTAP_ARCHIVE_DECODER_FLOW_ROWS_H

#include "batch.h"
#include "flows.h"

#ifndef FLOW_ROWS_MAX
#define FLOW_ROWS_MAX (32u << 10)
#endif

extern const struct batch_kind flows_kind;

void flow_rows_put(struct batch *b, const struct flow *f, const struct fates *fates);

#endif
