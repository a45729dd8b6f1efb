/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>

#include "base/json.h"
#include "common/array.h"
#include "losses.h"
#include "walk.h"

#define LOSSES_MAX 65536u       /* entries: a file may claim a loss with each packet */
#define LOOK_BACK  64u          /* entries that are compared with a new one */
#define TOGETHER   1000000000ll /* ns: losses of one place are one entry */

static bool is_same(const struct loss *a, const struct loss *b)
{
	return a->interface == b->interface && a->queue == b->queue &&
	       a->direction == b->direction && a->reason == b->reason && b->ns >= a->ns &&
	       (uint64_t)b->ns - (uint64_t)a->ns < TOGETHER;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

void losses_add(struct losses *l, const struct loss *loss)
{
	uint32_t first = l->count > LOOK_BACK ? l->count - LOOK_BACK : 0;
	struct loss *added;

	for (uint32_t i = l->count; i-- > first;)
		if (is_same(&l->list[i], loss)) {
			l->list[i].packets = add(l->list[i].packets, loss->packets);
			return;
		}
	added = l->count < LOSSES_MAX ? rt_array_add(l->list, l->count) : NULL;
	if (added)
		*added = *loss;
	else
		l->beyond = add(l->beyond, loss->packets);
}

void losses_clear(struct losses *l)
{
	free(l->list);
	*l = (struct losses){0};
}

static json_t *entry(const struct loss *l)
{
	static const char *const reasons[] = {[LOSS_CAPTURE] = "capture", [LOSS_NIC] = "nic"};
	json_t *j = json_object();

	json_object_set_new(j, "time_ns", json_integer(l->ns));
	json_object_set_new(j, "interface", json_integer(l->interface));
	json_object_set_new(
		j, "queue", l->queue == NO_QUEUE ? json_null() : json_integer(l->queue));
	json_object_set_new(j, "direction",
		l->direction == 1   ? json_string("rx")
		: l->direction == 2 ? json_string("tx")
				    : json_null());
	json_object_set_new(j, "packets",
		json_integer((json_int_t)(l->packets < INT64_MAX ? l->packets : INT64_MAX)));
	json_object_set_new(j, "reason", json_string(reasons[l->reason]));
	return j;
}

json_t *losses_json(const struct losses *l)
{
	json_t *j = json_array();

	for (uint32_t i = 0; i < l->count; i++)
		json_array_append_new(j, entry(&l->list[i]));
	return j;
}
