/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/command.h"
#include "collectors.h"
#include "base/json.h"
#include "base/util.h"

static const unsigned bits[] = {RINGTAP_POLLS, RINGTAP_BYTES, RINGTAP_BUSY, RINGTAP_GAPS,
	RINGTAP_LATENCY, RINGTAP_ADDRESSES, RINGTAP_POOLS, RINGTAP_XSTATS, RINGTAP_DEVICES};
#define BITS (sizeof(bits) / sizeof(bits[0]))

unsigned collectors_parse(const char *command, const char *text)
{
	unsigned all = 0;

	for (const char *p = text;;) {
		size_t len = strcspn(p, ",");
		int i = choice_index(COLLECTOR_NAMES, p, len);

		if (i >= 0)
			all |= bits[i];
		else if (len == 3 && !memcmp(p, "all", 3)) {
			for (size_t k = 0; k < BITS; k++)
				all |= bits[k];
		} else {
			message_print("%s: --collectors '%s': there is no collector '%.*s'; %s",
				command, text, (int)len, p,
				choice_advice("all|" COLLECTOR_NAMES, p, len,
					"choose from all|" COLLECTOR_NAMES));
			return 0;
		}
		if (!p[len])
			return all;
		p += len + 1;
	}
}

json_t *collectors_json(unsigned collectors)
{
	static const char *const names[] = {"polls", "bytes", "busy", "gaps", "latency",
		"addresses", "pools", "xstats", "devices"};
	json_t *j = json_array();

	for (size_t i = 0; i < BITS; i++)
		if (collectors & bits[i])
			json_array_append_new(j, json_text(names[i]));
	return j;
}
