/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of a recording: while it goes on, and at its end. */
#ifndef RINGTAP_CLI_RECORD_REPORT_H
#define RINGTAP_CLI_RECORD_REPORT_H

#include "record.h"
#include "show/sheet.h"

void report_live(struct recorder *r, uint64_t now_ns);
/* The counts so far. */
void report_counts(struct recorder *r, FILE *f);
void report_summary(const struct recorder *r, FILE *f);
void report_json(const struct recorder *r, FILE *f);
/* Reports that a buffer has less than was requested, and why. */
void report_buffer(const struct recorder *r);
/* Reports lost packets, and returns whether there are any. */
bool report_losses(const struct recorder *r);
#define REPORT_LOSS_LEN 512
/* Prints losses and their remedy. False: nothing was lost. */
bool report_loss_text(
	const struct recorder *r, char text[REPORT_LOSS_LEN], char advice[REPORT_LOSS_LEN]);
/* The counts of interfaces and queues. The caller frees it. */
struct sheet report_table(const struct recorder *r, const struct ringtap_stats *s);
#define REPORT_LABEL_LEN (2 * RINGTAP_NAME_LEN + 2)
/* The name of interface i; NULL: it has none. */
const char *report_label(const struct recorder *r, unsigned i, char out[REPORT_LABEL_LEN]);
/* The same of fates. */
bool report_fates_lost(const struct recorder *r);
const char *end_name(enum end_reason why);

#endif
