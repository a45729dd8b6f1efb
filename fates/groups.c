/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/layers.h"
#include "groups.h"

#define FLOWS_MAX 16384

int groups_init(struct packet_groups *g)
{
	*g = (struct packet_groups){.protocols = {.size = sizeof(struct packet_group)}};
	g->flows = flows_new(FLOWS_MAX);
	return g->flows ? 0 : -ENOMEM;
}

void groups_free(struct packet_groups *g)
{
	keyed_free(&g->protocols);
	flows_free(g->flows);
}

int groups_clear(struct packet_groups *g)
{
	groups_free(g);
	return groups_init(g);
}

/* As many as there are names of headers_protocol(). */
static uint64_t key_of(const struct headers *h)
{
	if (h->flags & HAS_IP)
		return UINT64_C(1) << 32 | (uint32_t)h->version << 8 | h->protocol;
	if (!(h->flags & HAS_TYPE))
		return 0;
	return UINT64_C(2) << 32 | (h->type < TYPE_MIN ? 0 : h->type);
}

static void take_example(struct packet_group *group, const struct sample *p)
{
	group->example = *p;
	if (group->example.caplen > SAMPLE_BYTES)
		group->example.caplen = SAMPLE_BYTES;
	memcpy(group->data, p->data, group->example.caplen);
	group->example.data = group->data;
	group->fresh = true;
}

void groups_add(struct packet_groups *g, const struct sample *p)
{
	struct headers h;
	struct packet_group *group;

	headers_read(&h, LINKTYPE_ETHERNET, p->data, p->caplen);
	g->packets++;
	g->bytes += p->length;
	g->sizes[size_class(p->length)]++;
	g->reasons[p->reason]++;
	flows_add(g->flows, &h, p->length, 0);
	group = keyed_get(&g->protocols, key_of(&h));
	if (!group) {
		g->no_room++;
		return;
	}
	if (!group->packets)
		headers_protocol(&h, group->name);
	group->packets++;
	group->bytes += p->length;
	if (p->age_ns > group->oldest_ns)
		group->oldest_ns = p->age_ns;
	if (!group->fresh)
		take_example(group, p);
}

void groups_mark(struct packet_groups *g)
{
	g->marked = g->packets;
	for (uint32_t i = 0; i < g->protocols.count; i++) {
		struct packet_group *group = g->protocols.things[i];

		group->marked = group->packets;
		group->fresh = false;
	}
}

void groups_unmark(struct packet_groups *g)
{
	g->marked = 0;
	for (uint32_t i = 0; i < g->protocols.count; i++)
		((struct packet_group *)g->protocols.things[i])->marked = 0;
}

static int by_packets(const void *a, const void *b)
{
	const struct packet_group *x = *(const struct packet_group *const *)a,
				  *y = *(const struct packet_group *const *)b;

	if (x->packets != y->packets)
		return x->packets < y->packets ? 1 : -1;
	return strcmp(x->name, y->name);
}

unsigned groups_top(const struct packet_groups *g, const struct packet_group **out, unsigned max)
{
	const struct packet_group *all[KEYED_MAX];
	unsigned n = g->protocols.count;

	for (unsigned i = 0; i < n; i++)
		all[i] = g->protocols.things[i];
	qsort(all, n, sizeof(*all), by_packets);
	n = n < max ? n : max;
	memcpy(out, all, n * sizeof(*out));
	return n;
}

char *sample_text(const struct sample *p, char buf[SAMPLE_TEXT])
{
	struct headers h;
	size_t len;

	headers_read(&h, LINKTYPE_ETHERNET, p->data, p->caplen);
	headers_text(&h, buf);
	len = strlen(buf);
	len += (size_t)snprintf(buf + len, SAMPLE_TEXT - len, ", %u bytes", p->length);
	if (h.flags & HAS_IP)
		len += (size_t)snprintf(buf + len, SAMPLE_TEXT - len, ", %s %u",
			h.version == 6 ? "hop limit" : "TTL", h.ttl);
	if (h.vlans)
		snprintf(buf + len, SAMPLE_TEXT - len, ", VLAN %u", h.tci[0] & 4095);
	return buf;
}

struct sample sample_of_open(const struct ringtap_open_packet *p, uint64_t now_ns)
{
	return (struct sample){.data = p->data,
		.caplen = p->caplen,
		.length = p->length,
		.interface = p->interface,
		.queue = p->queue,
		.reason = p->reason,
		.has_history = p->has_history,
		.mbuf = p->mbuf,
		.history = p->history,
		.ns = p->ns,
		.age_ns = now_ns > p->ns ? now_ns - p->ns : 0};
}
