/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.h"

#define FLOWS_MAX 16384
#define ETHERNET  1 /* LINKTYPE_ETHERNET */
#define TYPE_MIN  0x600

int kinds_init(struct kinds *k)
{
	*k = (struct kinds){.protocols = {.size = sizeof(struct kind)}};
	k->flows = flows_new(FLOWS_MAX);
	return k->flows ? 0 : -ENOMEM;
}

void kinds_free(struct kinds *k)
{
	keyed_free(&k->protocols);
	flows_free(k->flows);
}

int kinds_clear(struct kinds *k)
{
	kinds_free(k);
	return kinds_init(k);
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

static void add_flow(struct kinds *k, const struct headers *h, uint32_t length)
{
	struct flow_key key = {.ethertype = h->type,
		.vlan = h->vlans ? h->tci[0] & 4095 : FLOW_NO_VLAN,
		.protocol = h->protocol,
		.source_port = h->src_port,
		.target_port = h->dst_port};
	bool ip = h->flags & HAS_IP;

	memcpy(key.source, ip ? h->src : h->src_mac, ip ? 16 : 6);
	memcpy(key.target, ip ? h->dst : h->dst_mac, ip ? 16 : 6);
	flows_add_key(k->flows, &key, length, 0);
}

static void take_example(struct kind *kind, const struct sample *p)
{
	kind->example = *p;
	if (kind->example.caplen > SAMPLE_BYTES)
		kind->example.caplen = SAMPLE_BYTES;
	memcpy(kind->data, p->data, kind->example.caplen);
	kind->example.data = kind->data;
	kind->fresh = true;
}

void kinds_add(struct kinds *k, const struct sample *p)
{
	struct headers h;
	struct kind *kind;

	headers_read(&h, ETHERNET, p->data, p->caplen);
	k->packets++;
	k->bytes += p->length;
	k->sizes[size_class(p->length)]++;
	add_flow(k, &h, p->length);
	kind = keyed_get(&k->protocols, key_of(&h));
	if (!kind) {
		k->no_room++;
		return;
	}
	if (!kind->packets)
		headers_protocol(&h, kind->name);
	kind->packets++;
	kind->bytes += p->length;
	if (p->age_ns > kind->oldest_ns)
		kind->oldest_ns = p->age_ns;
	if (!kind->fresh)
		take_example(kind, p);
}

void kinds_mark(struct kinds *k)
{
	k->marked = k->packets;
	for (uint32_t i = 0; i < k->protocols.count; i++) {
		struct kind *kind = k->protocols.things[i];

		kind->marked = kind->packets;
		kind->fresh = false;
	}
}

void kinds_unmark(struct kinds *k)
{
	k->marked = 0;
	for (uint32_t i = 0; i < k->protocols.count; i++)
		((struct kind *)k->protocols.things[i])->marked = 0;
}

static int by_packets(const void *a, const void *b)
{
	const struct kind *x = *(const struct kind *const *)a, *y = *(const struct kind *const *)b;

	if (x->packets != y->packets)
		return x->packets < y->packets ? 1 : -1;
	return strcmp(x->name, y->name);
}

unsigned kinds_top(const struct kinds *k, const struct kind **out, unsigned max)
{
	const struct kind *all[KEYED_MAX];
	unsigned n = k->protocols.count;

	for (unsigned i = 0; i < n; i++)
		all[i] = k->protocols.things[i];
	qsort(all, n, sizeof(*all), by_packets);
	n = n < max ? n : max;
	memcpy(out, all, n * sizeof(*out));
	return n;
}

char *sample_text(const struct sample *p, char buf[SAMPLE_TEXT])
{
	struct headers h;
	size_t len;

	headers_read(&h, ETHERNET, p->data, p->caplen);
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
		.ns = p->ns,
		.age_ns = now_ns > p->ns ? now_ns - p->ns : 0};
}
