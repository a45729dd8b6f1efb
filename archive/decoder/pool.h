/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of batches: used again for later ones, as the kernel takes longer to hand out pages than
 * rows take to fill them. Batches may be released by other threads, and after the decoder. */
#ifndef RINGTAP_ARCHIVE_DECODER_POOL_H
#define RINGTAP_ARCHIVE_DECODER_POOL_H

#include <pthread.h>
#include <stddef.h>

struct pool {
	pthread_mutex_t lock;
	unsigned refs; /* references of its owner, and of pieces in use */
	size_t size;   /* bytes of a piece */
	unsigned kept;
	void *keep[3];
};

/* NULL: no memory. */
struct pool *pool_new(size_t size);
void pool_close(struct pool *p);
/* A piece, 64-byte aligned; undefined contents. NULL: no memory. */
void *pool_take(struct pool *p);
void pool_give(struct pool *p, void *piece);

#endif
