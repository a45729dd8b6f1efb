/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps that bpftrace prints */
#ifndef RINGTAP_CLI_TRACE_MAPS_H
#define RINGTAP_CLI_TRACE_MAPS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All maps of its output in JSON lines: {"@name": {"key,key": …}}. NULL: invalid. */
json_t *maps_read(const char *lines);
/* Entries of the map in bpftrace's count: a histogram has one for each bucket. */
size_t maps_size(const json_t *map);
/* Parses count whole numbers at the beginning of a key. Returns the rest, or NULL if there are
 * fewer. */
const char *maps_key(const char *key, uint64_t *n, unsigned count);
/* The value of a key in a map; NULL: none. */
json_t *maps_get(json_t *maps, const char *map, const char *key);
/* A histogram as [[low, end, count], …], bounds multiplied by scale; end is exclusive. */
json_t *maps_histogram(const json_t *buckets, double scale);
/* Prints bars; ns: bounds are times, else whole numbers. */
void maps_print_histogram(const json_t *histogram, bool ns);
/* The text under a key without control characters: names come from other processes. otherwise: if
 * there is none. */
#define MAPS_TEXT_LEN 64
const char *maps_text(
	char buf[MAPS_TEXT_LEN], const json_t *row, const char *key, const char *otherwise);
/* Sorts an array of objects by number key, largest first. */
void maps_sort(json_t *array, const char *key);

#endif
