/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "common/array.h"
#include "clock.h"

#define PREFIX   "clock: "
#define TEXT_MAX 256u  /* bytes of a comment that are read, with the final zero */
#define SETS_MAX 4096u /* entries: a file may claim one with each block */

static uint64_t number(const char *text)
{
	uint64_t v;

	return sscanf(text, "%" SCNu64, &v) == 1 && v < INT64_MAX / 1000 ? v : CLOCK_NONE;
}

static void take_word(struct clock_report *r, const char *key, const char *value)
{
	if (!strcmp(key, "synchronized"))
		r->synchronized = !strcmp(value, "yes") ? 1 : !strcmp(value, "no") ? 0 : -1;
	else if (!strcmp(key, "maxerror_us"))
		r->error_us = number(value);
	else if (!strcmp(key, "esterror_us"))
		r->estimate_us = number(value);
	else if (!strcmp(key, "set_ns"))
		r->set_ns = strtoll(value, NULL, 10);
	else if (!strcmp(key, "tsc_hz"))
		r->tsc_hz = number(value) == CLOCK_NONE ? 0 : number(value);
	else if (!strcmp(key, "timestamp"))
		snprintf(r->timestamp, sizeof(r->timestamp), "%s", value);
}

/* Words of later versions are skipped. */
void clock_parse(struct clock_report *r, const uint8_t *text, size_t len)
{
	const size_t prefix = strlen(PREFIX);
	char copy[TEXT_MAX], *rest = NULL;

	if (r->said || len < prefix || memcmp(text, PREFIX, prefix))
		return;
	len = len < TEXT_MAX ? len : TEXT_MAX - 1;
	memcpy(copy, text, len);
	copy[len] = '\0';
	*r = (struct clock_report){.said = true,
		.synchronized = -1,
		.error_us = CLOCK_NONE,
		.estimate_us = CLOCK_NONE};
	for (char *word = strtok_r(copy + prefix, " ", &rest); word;
		word = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value++ = '\0';
		take_word(r, word, value);
	}
}

static void add_set(struct clock *c, int64_t ns, int64_t by_ns)
{
	struct clock_set *added =
		c->set_count < SETS_MAX ? rt_array_add(c->sets, c->set_count) : NULL;

	if (added)
		*added = (struct clock_set){ns, by_ns};
	else
		c->set_beyond++;
}

void clock_add(struct clock *c, const struct clock_report *r, int64_t ns)
{
	if (!r->said)
		return;
	c->reports++;
	c->known += r->synchronized >= 0;
	c->unsynchronized += r->synchronized == 0;
	if (r->error_us != CLOCK_NONE) {
		c->has_error = true;
		c->error_us = r->error_us > c->error_us ? r->error_us : c->error_us;
	}
	if (r->estimate_us != CLOCK_NONE && r->estimate_us > c->estimate_us)
		c->estimate_us = r->estimate_us;
	if (r->set_ns)
		add_set(c, ns, r->set_ns);
}

void clock_clear(struct clock *c)
{
	free(c->sets);
	*c = (struct clock){0};
}

static json_t *sets_json(const struct clock *c)
{
	json_t *j = json_array();

	for (uint32_t i = 0; i < c->set_count; i++) {
		json_t *entry = json_object();

		json_object_set_new(entry, "time_ns", json_integer(c->sets[i].ns));
		json_object_set_new(entry, "by_ns", json_integer(c->sets[i].by_ns));
		json_array_append_new(j, entry);
	}
	return j;
}

json_t *clock_json(const struct clock *c)
{
	json_t *j;

	if (!c->reports)
		return json_null();
	j = json_object();
	json_object_set_new(j, "reports", json_integer((json_int_t)c->reports));
	json_object_set_new(j, "unsynchronized", json_integer((json_int_t)c->unsynchronized));
	json_object_set_new(
		j, "synchronized", c->known ? json_boolean(!c->unsynchronized) : json_null());
	json_object_set_new(j, "max_error_ns",
		c->has_error ? json_integer((json_int_t)(1000 * c->error_us)) : json_null());
	json_object_set_new(j, "estimated_error_ns",
		c->has_error ? json_integer((json_int_t)(1000 * c->estimate_us)) : json_null());
	json_object_set_new(j, "set", sets_json(c));
	json_object_set_new(j, "set_beyond", json_integer((json_int_t)c->set_beyond));
	return j;
}
