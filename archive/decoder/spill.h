/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows in their order: out of memory, and out of a temporary file once there were too many. */
#ifndef RINGTAP_ARCHIVE_DECODER_SPILL_H
#define RINGTAP_ARCHIVE_DECODER_SPILL_H

#include "flows.h"

/* Writes all flows to the temporary file, and empties the table. 0 or -errno. */
int spill_flows(struct flows *t);
/* NULL is allowed. */
void spill_close(struct spill *s);

/* Reads all flows, sorted by id. */
struct flow_reader;
/* 0 or -errno. Close it in any case; t must not change meanwhile. */
int flow_reader_open(struct flow_reader **out, struct flows *t);
void flow_reader_close(struct flow_reader *r);
/* The next flow, until the next call. 1; 0: the end; -errno. */
int flow_reader_next(struct flow_reader *r, const struct flow **f);

#endif
