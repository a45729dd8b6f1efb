/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compressed frames in the order of their bytes, made by the calling thread or by several others.
 *
 *   put --copy--> frame n+2 | frame n+1, n: a thread compresses each | frame n-1 --> take
 *
 * All functions are for one thread. The threads behind it block all signals, so that they interrupt
 * this one's writes.
 */
#ifndef RINGTAP_SINK_FRAMES_H
#define RINGTAP_SINK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "compress.h"

#define FRAME_BYTES (4u << 20) /* input bytes after which a frame should end */

struct frames;

/* threads: 1, or the calling one and those that compress. 0 or -errno. */
int frames_new(struct frames **out, enum compress kind, unsigned threads);
/* NULL: nothing. */
void frames_free(struct frames *f);
/* Adds a copy to the frame; begins one where there is none. Not while frames_full(). 0, -ENOMEM,
 * -EIO. */
int frames_put(struct frames *f, const void *data, size_t len);
/* Input bytes of the frame so far; 0: there is none. */
uint64_t frames_pending(const struct frames *f);
/* Ends the frame, which has some bytes. packets: what stands before its end in the file. */
void frames_end(struct frames *f, uint64_t packets);
/* The next frame can only be begun when one has been taken. */
bool frames_full(const struct frames *f);
/* Takes the oldest frame that has been ended and not taken. *data lives until the next put. 1; 0:
 * there is none, or, without wait, it is not compressed yet; -ENOMEM, -EIO: it is lost. */
int frames_take(struct frames *f, bool wait, struct iovec *data, uint64_t *packets);

#endif
