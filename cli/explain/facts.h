/* SPDX-License-Identifier: BSD-3-Clause */
/* The summary of a report: counts, shares, and what the file does not show. */
#ifndef RINGTAP_CLI_EXPLAIN_FACTS_H
#define RINGTAP_CLI_EXPLAIN_FACTS_H

#include "report.h"

struct fact {
	const char *name;
	uint64_t count;
	double share; /* share of the received packets; NAN: none */
	char meaning[80];
};
#define FACTS_MAX 8
unsigned facts_make(struct fact facts[FACTS_MAX], const struct report *r);
/* Calls say() for each sentence on what the file does not show, and what to do. */
void notes_make(const struct report *r, void (*say)(void *ctx, const char *text), void *ctx);
/* "trace.pcapng, 2.0 s": buf takes 256 bytes and is returned. */
char *report_title(const struct report *r, char *buf);

#endif
