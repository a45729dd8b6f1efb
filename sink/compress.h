/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compression into many independent frames of a few MiB, which zstd, lz4 and Wireshark read as one:
 * a file that breaks off stays readable up to its last whole frame.
 */
#ifndef RINGTAP_SINK_COMPRESS_H
#define RINGTAP_SINK_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

enum compress { COMPRESS_NONE = -1, COMPRESS_ZSTD, COMPRESS_LZ4 };

struct compressor;

int compressor_new(struct compressor **out, enum compress kind);
void compressor_free(struct compressor *c);
/* Adds to the frame; begins one where there is none. 0, -ENOMEM, -EIO. */
int compressor_put(struct compressor *c, const void *data, size_t len);
/* Input bytes of the frame so far; 0: there is none. */
uint64_t compressor_pending(const struct compressor *c);
/* Ends the frame. *data lives until the next put. 0, -ENOMEM, -EIO. */
int compressor_end(struct compressor *c, void **data, size_t *len);

#endif
