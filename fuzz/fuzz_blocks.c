/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of incidents, which may come from anywhere: the input is one, block after block. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "packet/blocks.h"
#include "packet/flows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own, so that the sanitizer finds what is read beyond it. */
static void take_packet(struct flows *flows, const struct block *b)
{
	char text[FLOW_TEXT];
	struct flow_key k;
	struct headers h;
	uint32_t vni;
	uint8_t *copy = malloc(b->captured + 1);

	memcpy(copy, b->data, b->captured);
	if (headers_inner(&h, &vni, b->linktype, copy, b->captured) > TUNNELS_MAX)
		abort();
	headers_read(&h, b->linktype, copy, b->captured);
	flows_add(flows, &h, b->length, b->direction == DIRECTION_TX);
	flow_key_of(&k, 0, &h);
	flow_text(&k, text);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flows *flows = flows_new(4);
	const struct flow *top[4];
	struct blocks b = {0};
	struct block block;
	int kind;

	window_memory(&b.w, data, size);
	while ((kind = blocks_next(&b, &block)) > 0) {
		if (block.len > size - block.offset || block.bytes != data + block.offset)
			abort();
		if (kind == BLOCK_PACKET)
			take_packet(flows, &block);
	}
	if (flows_top(flows, FLOWS_BY_BYTES, top, 4) > 4 || flows_count(flows) > 4)
		abort();
	blocks_close(&b);
	flows_free(flows);
	return 0;
}
