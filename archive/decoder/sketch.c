/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log_linear.h"
#include "sketch.h"

#define BITS        5
#define COUNT_BITS  48
#define COUNT(word) ((word) & ((UINT64_C(1) << COUNT_BITS) - 1))

struct sketch {
	uint32_t count, room;
	uint64_t bucket[]; /* sorted: number << 48 | count */
};

/* The first bucket that is not below this one. */
static uint32_t search(const struct sketch *s, uint32_t number)
{
	uint32_t low = 0, high = s ? s->count : 0;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (s->bucket[middle] >> COUNT_BITS < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int make_room(struct sketch **s, uint64_t *bytes)
{
	uint32_t room = *s ? 2 * (*s)->room : 4;
	struct sketch *more;

	if (*s && (*s)->count < (*s)->room)
		return 0;
	more = realloc(*s, sizeof(*more) + room * sizeof(more->bucket[0]));
	if (!more)
		return -ENOMEM;
	*bytes += *s ? room / 2 * sizeof(more->bucket[0])
		     : sizeof(*more) + room * sizeof(more->bucket[0]);
	if (!*s)
		more->count = 0;
	more->room = room;
	*s = more;
	return 0;
}

int sketch_add_bucket(struct sketch **s, uint64_t word, uint64_t *bytes)
{
	uint32_t number = (uint32_t)(word >> COUNT_BITS), at = search(*s, number);
	int ret;

	if (*s && at < (*s)->count && (*s)->bucket[at] >> COUNT_BITS == number) {
		(*s)->bucket[at] += COUNT(word);
		return 0;
	}
	ret = make_room(s, bytes);
	if (ret)
		return ret;
	memmove(&(*s)->bucket[at + 1], &(*s)->bucket[at],
		((*s)->count - at) * sizeof((*s)->bucket[0]));
	(*s)->bucket[at] = word;
	(*s)->count++;
	return 0;
}

int sketch_add(struct sketch **s, uint64_t value, uint64_t *bytes)
{
	return sketch_add_bucket(s, (uint64_t)rt_log_bucket(value, BITS) << COUNT_BITS | 1, bytes);
}

static uint64_t middle(uint64_t bucket)
{
	uint64_t width, low = rt_log_bucket_low((uint32_t)(bucket >> COUNT_BITS), BITS, &width);

	return low + width / 2;
}

uint64_t sketch_percentile(const struct sketch *s, unsigned percent)
{
	uint64_t total = 0, seen = 0, rank;

	for (uint32_t i = 0; i < s->count; i++)
		total += COUNT(s->bucket[i]);
	rank = (total * percent + 99) / 100;
	for (uint32_t i = 0; i < s->count; i++) {
		seen += COUNT(s->bucket[i]);
		if (seen >= rank)
			return middle(s->bucket[i]);
	}
	return middle(s->bucket[s->count - 1]);
}

const uint64_t *sketch_buckets(const struct sketch *s, uint32_t *count)
{
	*count = s ? s->count : 0;
	return s ? s->bucket : NULL;
}

void sketch_free(struct sketch *s)
{
	free(s);
}
