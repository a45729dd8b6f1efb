/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "kept.h"

#define SECONDS 64

/* Events of a queue, by the second. */
struct forgotten {
	struct second {
		uint64_t number, count; /* number n at n modulo SECONDS */
	} seconds[SECONDS];
};

int kept_fates_init(struct kept_fates *k, uint64_t room)
{
	*k = (struct kept_fates){.room = room, .forgotten.size = sizeof(struct forgotten)};
	k->events = malloc(room * sizeof(*k->events));
	return k->events ? 0 : -ENOMEM;
}

void kept_fates_free(struct kept_fates *k)
{
	keyed_free(&k->forgotten);
	free(k->events);
}

uint64_t fate_noticed_ns(const struct rt_fates_packet *e)
{
	return (uint64_t)e->ns_high << 32 | e->ns_low;
}

static struct forgotten *of_queue(struct kept_fates *k, uint32_t interface, uint32_t queue)
{
	return keyed_get(&k->forgotten, (uint64_t)interface << 32 | queue);
}

static void forget(struct kept_fates *k, const struct rt_fates_packet *e)
{
	const uint64_t ns = fate_noticed_ns(e), number = ns / NS_PER_S;
	struct forgotten *of = of_queue(k, e->interface, e->queue);
	struct second *s;

	k->forgotten_ns = ns;
	if (!of)
		return;
	s = &of->seconds[number % SECONDS];
	if (s->number != number)
		*s = (struct second){.number = number};
	s->count++;
}

void kept_fates_add(struct kept_fates *k, const struct rt_fates_packet *e)
{
	struct rt_fates_packet *to = &k->events[k->count % k->room];

	if (k->count++ >= k->room)
		forget(k, to);
	*to = *e;
}

uint64_t kept_fates_first(const struct kept_fates *k)
{
	return k->count > k->room ? k->count - k->room : 0;
}

const struct rt_fates_packet *kept_fates_get(const struct kept_fates *k, uint64_t n)
{
	return &k->events[n % k->room];
}

uint64_t kept_fates_forgotten(
	struct kept_fates *k, uint32_t interface, uint32_t queue, uint64_t from_ns)
{
	const struct forgotten *of;
	uint64_t count = 0;

	if (!k->forgotten_ns || k->forgotten_ns < from_ns)
		return 0;
	of = of_queue(k, interface, queue);
	if (!of)
		return 1;
	for (unsigned n = 0; n < SECONDS; n++)
		if (of->seconds[n].number >= from_ns / NS_PER_S)
			count += of->seconds[n].count;
	return count;
}
