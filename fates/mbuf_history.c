/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "common/mbuf_history.h"
#include "base/json.h"
#include "base/util.h"
#include "mbuf_history.h"

#define OPS  (64 / RT_HISTORY_BITS)
#define MASK ((1u << RT_HISTORY_BITS) - 1)
#define NAME 24

static const char *const names[MASK + 1] = {
#define RT_NAME_OF(op, number, text) [number] = (text),
	RT_HISTORY_OPS(RT_NAME_OF)};

/* The names, the oldest first. Returns their number. */
static unsigned list_of(uint64_t history, char out[OPS][NAME])
{
	unsigned n = 0;

	while (n < OPS && history >> n * RT_HISTORY_BITS & MASK)
		n++;
	for (unsigned i = 0; i < n; i++) {
		unsigned op = history >> (n - 1 - i) * RT_HISTORY_BITS & MASK;

		if (names[op])
			snprintf(out[i], NAME, "%s", names[op]);
		else
			snprintf(out[i], NAME, "operation %u", op);
	}
	return n;
}

char *history_text(uint64_t history, char buf[HISTORY_TEXT])
{
	char list[OPS][NAME];
	unsigned n = list_of(history, list);

	strcpy(buf, n ? "" : "none");
	if (n == OPS)
		text_list_add(buf, HISTORY_TEXT, "...");
	for (unsigned i = 0; i < n; i++)
		text_list_add(buf, HISTORY_TEXT, list[i]);
	return buf;
}

json_t *history_json(uint64_t history)
{
	char list[OPS][NAME];
	unsigned n = list_of(history, list);
	json_t *all = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(all, json_text(list[i]));
	return all;
}
