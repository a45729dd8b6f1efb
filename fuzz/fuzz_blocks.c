/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of incidents, which may come from anywhere: the input is one, block after block. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/pcapng.h"
#include "packet/blocks.h"
#include "packet/flows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own, so that the sanitizer finds what is read beyond it. */
static void take_packet(struct flows *flows, const uint8_t *data, const struct rt_record *r)
{
	char text[FLOW_TEXT];
	struct flow_key k;
	struct headers h;
	uint8_t *copy = malloc(r->cap_len + 1);

	memcpy(copy, data, r->cap_len);
	headers_read(&h, LINKTYPE_ETHERNET, copy, r->cap_len);
	flows_add(flows, &h, r->orig_len, r->if_index & 1);
	flow_key_of(&k, 0, &h);
	flow_text(&k, text);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flows *flows = flows_new(4);
	const struct flow *top[4];
	struct block b;

	for (size_t at = 0; block_read(data + at, size - at, &b) > 0; at += b.len) {
		const uint8_t *packet;
		struct rt_record r;
		struct rt_options o;

		if (b.len > size - at)
			abort();
		if (block_packet(&b, &r, &packet))
			continue;
		if (packet + r.cap_len > b.data + b.len)
			abort();
		rt_record_options(b.data, &r, &o);
		take_packet(flows, packet, &r);
	}
	if (flows_top(flows, FLOWS_BY_BYTES, top, 4) > 4 || flows_count(flows) > 4)
		abort();
	flows_free(flows);
	return 0;
}
