/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocols.h"

bool protocol_count(struct keyed *k, const struct waiting *w, const struct headers *h)
{
	struct protocol *p = keyed_get(k, (uint64_t)w->port << 32 | (uint64_t)h->type << 16 |
						  (uint64_t)h->version << 8 | h->protocol);

	if (!p)
		return false;
	if (!p->count++) {
		p->port = w->port;
		p->number = w->number;
		p->ns = w->ns;
		p->length = w->length;
		p->headers = *h;
	}
	return true;
}
