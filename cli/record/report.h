/* SPDX-License-Identifier: BSD-3-Clause */
/* What a recording prints: while it goes on, and at its end. */
#ifndef RINGTAP_CLI_RECORD_REPORT_H
#define RINGTAP_CLI_RECORD_REPORT_H

#include "record.h"

void report_live(struct recorder *r, uint64_t now_ns);
/* The counts so far. */
void report_counts(struct recorder *r, FILE *f);
void report_summary(const struct recorder *r, FILE *f);
void report_json(const struct recorder *r, FILE *f);
/* Reports that a buffer has less than was requested, and why. */
void report_buffer(const struct recorder *r);
/* Reports lost packets, and returns whether there are any. */
bool report_losses(const struct recorder *r);
/* The same of fates. */
bool report_fates_lost(const struct recorder *r);
const char *end_name(enum end_reason why);

#endif
