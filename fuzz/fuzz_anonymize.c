/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets and blocks that become anonymous: the input is the number of a link type, and a packet,
 * or from BLOCKS on a pcapng file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "anonymize/blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of its size, so that the sanitizer finds what is read or written beyond it. */
static uint8_t *make(struct pseudonyms *names, enum payload payload, uint16_t linktype,
	const uint8_t *in, size_t len, size_t *made)
{
	uint8_t *out = malloc(len + !len);

	memset(out, 0xff, len + !len);
	*made = anonymize_packet(names, payload, linktype, in, len, len, out);
	return out;
}

/* Bytes that are cut off are zeros where they are not, and payload does not come from elsewhere. */
static void check_packet(
	struct pseudonyms *names, uint16_t linktype, const uint8_t *data, size_t len)
{
	uint8_t *in = malloc(len + !len), *cut, *zero, *keep;
	size_t n, all, kept;

	memcpy(in, data, len);
	cut = make(names, PAYLOAD_CUT, linktype, in, len, &n);
	zero = make(names, PAYLOAD_ZERO, linktype, in, len, &all);
	keep = make(names, PAYLOAD_KEEP, linktype, in, len, &kept);
	if (n > len || all != len || kept != len || memcmp(cut, zero, n))
		abort();
	for (size_t i = n; i < len; i++)
		if (zero[i] || (keep[i] && keep[i] != in[i]))
			abort();
	free(in);
	free(cut);
	free(zero);
	free(keep);
}

/* Each block that comes out is whole, of the same kind, and packets have their length. */
static void check_blocks(
	struct pseudonyms *names, enum payload payload, const uint8_t *data, size_t len)
{
	struct anonymizer a = {.names = names, .payload = payload, .blocks.w.fd = -1};
	struct blocks again = {.w.fd = -1};
	struct block b, c;
	int kind;

	window_memory(&a.blocks.w, data, len);
	while ((kind = blocks_next(&a.blocks, &b)) > 0) {
		uint8_t *out = malloc(b.len + ANONYMIZE_MORE);
		const size_t n = anonymize_block(&a, kind, &b, out);

		window_memory(&again.w, out, n);
		again.next = 0;
		if (n > b.len + ANONYMIZE_MORE || !n != (kind == BLOCK_OTHER))
			abort();
		if (n && (blocks_next(&again, &c) != kind || c.len != n))
			abort();
		if (kind == BLOCK_PACKET && (c.length != b.length || c.captured > b.captured ||
						    c.direction != b.direction))
			abort();
		free(out);
	}
	anonymizer_free(&a);
	blocks_close(&again);
}

#define BLOCKS 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t linktypes[] = {1, 101, 0, 113, 276};
	static struct pseudonyms *names;

	if (!size)
		return 0;
	if (!names)
		names = pseudonyms_new((const uint8_t[PSEUDONYM_KEY]){3});
	if (data[0] >= BLOCKS)
		check_blocks(names, (enum payload)(data[0] % 3), data + 1, size - 1);
	else
		check_packet(names, linktypes[data[0] % 5], data + 1, size - 1);
	return 0;
}
