/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of a flow, for its percentiles: the buckets of common/log_linear.h that are not empty. A
 * percentile is off by 1.6 % at most. */
#ifndef RINGTAP_ARCHIVE_DECODER_SKETCH_H
#define RINGTAP_ARCHIVE_DECODER_SKETCH_H

#include <stdint.h>

struct sketch; /* NULL: empty */

/* 0 or -ENOMEM. *bytes grows by what they allocate. */
int sketch_add(struct sketch **s, uint64_t value, uint64_t *bytes);
int sketch_add_bucket(struct sketch **s, uint64_t word, uint64_t *bytes);
/* The value that this share of all is not above; s is not NULL. */
uint64_t sketch_percentile(const struct sketch *s, unsigned percent);
/* Buckets, one after the other: number << 48 | count. */
const uint64_t *sketch_buckets(const struct sketch *s, uint32_t *count);
void sketch_free(struct sketch *s);

#endif
