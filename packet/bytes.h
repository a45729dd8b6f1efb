/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a file or of standard input, uncompressed where it is zstd or LZ4. */
#ifndef RINGTAP_PACKET_BYTES_H
#define RINGTAP_PACKET_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bytes;

/* path: "-" is standard input. 0 or -errno. Free with bytes_close() in any case. */
int bytes_open(struct bytes **out, const char *path);
/* Bytes in memory, which must live as long as *out. 0 or -ENOMEM. */
int bytes_memory(struct bytes **out, const void *data, size_t len);
void bytes_close(struct bytes *b);

/* Makes the next bytes readable at *p, until the next call: n of them, more if they are there, or
 * fewer at the end. How many; -errno: reading failed; -EBADMSG: compressed data is damaged. */
ssize_t bytes_peek(struct bytes *b, size_t n, const uint8_t **p);
/* How many bytes from the next one on are at *p already, without reading. */
size_t bytes_ready(const struct bytes *b, const uint8_t **p);
/* Goes on behind n of the bytes that the last bytes_peek() has returned. */
void bytes_skip(struct bytes *b, size_t n);
/* Bytes before the next one. */
uint64_t bytes_offset(const struct bytes *b);

#endif
