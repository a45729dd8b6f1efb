/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_CLI_BUG_REPORT_REPORT_H
#define RINGTAP_CLI_BUG_REPORT_REPORT_H

#include <jansson.h>
#include <stdio.h>

/* Parts of the report; NULL: missing. */
struct bug_report {
	const char *versions;     /* what ringtap --version prints */
	const char *const *asked; /* operands, NULL at the end */
	json_t *list, *doctor;    /* documents of these commands */
	json_t *system;           /* the report owns it */
	json_t *problems;         /* texts: what could not be found out */
};

/* The document. The caller frees it; NULL: not enough memory. */
json_t *bug_report_json(const struct bug_report *r);
/* Prints it for people: a key and its value a line. */
void bug_report_print(FILE *f, const json_t *document);

#endif
