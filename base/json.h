/* SPDX-License-Identifier: BSD-3-Clause */
/* Thin help over jansson. */
#ifndef RINGTAP_BASE_JSON_H
#define RINGTAP_BASE_JSON_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Text of any origin: each byte that is not UTF-8 becomes U+FFFD, NULL becomes null. */
json_t *json_text(const char *text);
/* Beyond 2^53 a string: programs read numbers as doubles. */
json_t *json_count(uint64_t n);
/* Not finite: null. */
json_t *json_number(double v);
/* A duration, in whole nanoseconds. Not finite: null. */
json_t *json_ns(double ns);
/* An address. */
json_t *json_hex(uint64_t n);
/* A point in time, ns since the epoch: "2026-11-27T14:30:00.123456789Z". 0: null. */
json_t *json_time(uint64_t ns);
json_t *json_port(uint32_t index, const char *name);
/* lcore UINT32_MAX, name "", tid 0: null. */
json_t *json_thread(uint32_t lcore, const char *name, uint32_t tid);
/* pid 0, program NULL or "": null. */
json_t *json_application(const char *name, uint32_t pid, const char *program);

/* Begins every document, see docs/interface.md. Owns applications: an array, an object
 * for the only one, NULL for none. */
json_t *json_document(const char *command, json_t *applications);

/* Sets a value, which the object owns from then on. Without memory it is missing. */
static inline void json_put(json_t *to, const char *key, json_t *value)
{
	json_object_set_new(to, key, value);
}

/* Prints and frees; a line: without indentation. 0 or -errno. */
int json_print(json_t *j, FILE *f);
int json_print_line(json_t *j, FILE *f);

#endif
