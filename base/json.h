/* SPDX-License-Identifier: BSD-3-Clause */
/* Thin help over jansson. */
#ifndef RINGTAP_BASE_JSON_H
#define RINGTAP_BASE_JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Text of any origin: what is not UTF-8 becomes '?', NULL becomes null. */
json_t *json_text(const char *text);
json_t *json_count(uint64_t n);
/* Sets a value, which the object owns from then on. Without memory it is missing. */
static inline void json_put(json_t *to, const char *key, json_t *value)
{
	json_object_set_new(to, key, value);
}

/* Prints and frees; a line: without indentation. 0 or -errno. */
int json_print(json_t *j, FILE *f);
int json_print_line(json_t *j, FILE *f);

#endif
