/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes numbers in network byte order to a message of bounded size. What does not fit is left out,
 * and the message is marked. */
#ifndef RINGTAP_FLOWS_WIRE_H
#define RINGTAP_FLOWS_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An Ethernet frame's payload, less IPv6, UDP and a tunnel's headers. */
#define WIRE_BYTES 1400u

struct wire {
	size_t len;
	bool full; /* something was left out */
	uint8_t p[WIRE_BYTES];
};

static inline void wire_bytes(struct wire *w, const void *bytes, size_t n)
{
	if (n > sizeof(w->p) - w->len) {
		w->full = true;
		return;
	}
	memcpy(w->p + w->len, bytes, n);
	w->len += n;
}

/* The lower n bytes of v. */
static inline void wire_put(struct wire *w, uint64_t v, size_t n)
{
	const uint64_t big = htobe64(v);

	wire_bytes(w, (const uint8_t *)&big + sizeof(big) - n, n);
}

/* Replaces n bytes that were written before. */
static inline void wire_set(struct wire *w, size_t at, uint64_t v, size_t n)
{
	const uint64_t big = htobe64(v);

	memcpy(w->p + at, (const uint8_t *)&big + sizeof(big) - n, n);
}

/* Zeros up to a multiple of 4. */
static inline void wire_align(struct wire *w)
{
	wire_put(w, 0, -w->len & 3);
}

#endif
