/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that generators build, and the stamp in them.
 *
 * Both kinds have 42 bytes of headers (ARP: 14 + 28; UDP: 14 + 20 + 8, no options). The stamp
 * follows them: in the padding of an ARP request, at the beginning of the data of a UDP datagram.
 * Headers and stamp make 60 bytes, the shortest frame. All fields are big-endian:
 *
 *   offset 42  4 bytes  magic, "RTfw"
 *          46  1        stream: number of the generator in its process, from --stream on
 *          47  5        sequence number, from 0
 *          52  8        TSC before the burst was sent
 */
#ifndef RINGTAP_FWD_FRAME_H
#define RINGTAP_FWD_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "config.h"

#define STAMP_OFFSET  42
#define STAMP_MAGIC   0x52546677 /* "RTfw" */
#define STAMP_STREAMS 256
#define STAMP_NUMBERS (UINT64_C(1) << 40)
#define UDP_PORT      0x5254 /* source and destination port of built frames */

struct stamp {
	uint64_t number; /* sequence number */
	uint64_t tsc;    /* ticks */
	uint8_t stream;
};

static inline void stamp_write(uint8_t *frame, const struct stamp *s)
{
	const uint32_t magic = __builtin_bswap32(STAMP_MAGIC);
	const uint64_t number = __builtin_bswap64((uint64_t)s->stream << 40 | s->number);
	const uint64_t tsc = __builtin_bswap64(s->tsc);

	memcpy(frame + 44, &number, 8); /* the magic overwrites its two upper bytes, which are 0 */
	memcpy(frame + STAMP_OFFSET, &magic, 4);
	memcpy(frame + 52, &tsc, 8);
}

/* Whether the frame of len bytes has a stamp, which is then in s. */
static inline bool stamp_read(const uint8_t *frame, uint32_t len, struct stamp *s)
{
	uint32_t magic;
	uint64_t number, tsc;

	if (len < FRAME_MIN)
		return false;
	memcpy(&magic, frame + STAMP_OFFSET, 4);
	memcpy(&number, frame + 44, 8);
	memcpy(&tsc, frame + 52, 8);
	number = __builtin_bswap64(number);
	s->number = number & (STAMP_NUMBERS - 1);
	s->stream = (uint8_t)(number >> 40);
	s->tsc = __builtin_bswap64(tsc);
	return magic == __builtin_bswap32(STAMP_MAGIC);
}

/* Frames to send in turn. */
struct frames {
	uint8_t *data; /* frames at multiples of FRAME_ROOM */
	struct frame_at {
		uint32_t offset;
		uint32_t len;     /* bytes */
		uint32_t written; /* bytes; 0 where the CPU cannot write packets */
	} * at;
	uint64_t *due_ns; /* with --timing: of each, since the first one, never less than before */
	unsigned count;
	bool stamped; /* the frames have room for a stamp, and the CPU can write it */
};

/* Builds the configured frames with this source address, or reads --replay. The caller calls
 * frames_free(). 0, or -errno after printing why. */
int frames_make(struct frames *f, const struct fwd_config *c, const uint8_t src_mac[6]);
void frames_free(struct frames *f);

#endif
