/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/util.h"
#include "event_packet.h"

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* FNV-1a. */
static uint64_t hash_of(const uint8_t *data, uint32_t len)
{
	uint64_t hash = FNV_BASIS;

	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ data[i]) * FNV_PRIME;
	return hash;
}

static void port_of(const struct ringtap_capture *cap, unsigned interface, char *out, size_t size)
{
	struct ringtap_interface info = {.size = sizeof(info)};

	if (ringtap_capture_interface(cap, interface, &info))
		*out = '\0';
	else
		printable(out, size, info.name);
}

void event_set_packet(
	struct event *e, const struct ringtap_capture *cap, const struct ringtap_packet *p)
{
	e->packet = (struct sighting){.hash = hash_of(p->data, p->caplen),
		.caplen = p->caplen,
		.length = p->length,
		.queue = p->queue,
		.direction = p->direction};
	port_of(cap, p->interface, e->where, sizeof(e->where));
}

bool event_is_packet(
	const struct event *e, const struct ringtap_capture *cap, const struct ringtap_packet *p)
{
	char port[sizeof(e->where)];

	if (p->direction != e->packet.direction || p->queue != e->packet.queue ||
		p->caplen != e->packet.caplen || p->length != e->packet.length ||
		hash_of(p->data, p->caplen) != e->packet.hash)
		return false;
	port_of(cap, p->interface, port, sizeof(port));
	return !strcmp(port, e->where);
}
