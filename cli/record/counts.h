/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of captured and written packets. */
#ifndef RINGTAP_CLI_RECORD_COUNTS_H
#define RINGTAP_CLI_RECORD_COUNTS_H

#include "record.h"
#include "target/counts.h"

/* Brings shares up to date. */
int shares_update(struct recorder *r);
/* Counts the packets of a run as discarded, by interface. 0, -ENOMEM, -EBADMSG. */
int shares_discard(struct recorder *r, const struct ringtap_run *run);
/* Ends the recording at its source; discard: packets that still come are only counted. The first
 * reason stays. */
void recorder_end(struct recorder *r, enum end_reason why, bool discard);
/* Packets in all files, the current one included. */
uint64_t recorder_written(const struct recorder *r);
/* Duration of a recording that is over, and packets written a second. */
double recorder_seconds(const struct recorder *r);
double recorder_rate(const struct recorder *r);

#endif
