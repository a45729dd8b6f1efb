/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of CSV for each outcome. */
#ifndef RINGTAP_CLI_EXPLAIN_CSV_H
#define RINGTAP_CLI_EXPLAIN_CSV_H

#include <stdio.h>

#include "join.h"

struct csv {
	FILE *f;
	const struct records *records;
	const struct flow_table *flows;
};
void csv_begin(struct csv *c);
void csv_line(void *csv, const struct outcome *o);

#endif
