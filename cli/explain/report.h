/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a join. */
#ifndef RINGTAP_CLI_EXPLAIN_REPORT_H
#define RINGTAP_CLI_EXPLAIN_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "join.h"

enum flow_rank { BY_PACKETS, BY_NOT_SENT, BY_REORDERED, BY_P99, BY_NOT_OFFERED };

struct counted;

struct report {
	const struct join *j;
	const struct records *records;
	const char *const *files;
	unsigned file_count;
	const char *damage; /* what is wrong with a file; NULL: nothing */
	uint64_t flows;     /* to be listed at most */
	enum flow_rank order;
	const struct counted *counted; /* by the application, around an incident; NULL: none */
};

/* 0 or -errno. */
int report_text(const struct report *r, FILE *f);
int explain_json(const struct report *r, FILE *f);
json_t *spread_json(const struct spread *s);

/* For web_page_write(). */
json_t *report_view(const struct report *r);

#endif
