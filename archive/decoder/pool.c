/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>

#include "pool.h"

#define ALIGN 64u /* that Arrow recommends */

struct pool *pool_new(size_t size)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	p->refs = 1;
	return p;
}

/* Unlocks. */
static void drop(struct pool *p)
{
	bool last = !--p->refs;

	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	while (p->kept)
		free(p->keep[--p->kept]);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	drop(p);
}

void *pool_take(struct pool *p)
{
	void *piece = NULL;

	pthread_mutex_lock(&p->lock);
	p->refs++;
	if (p->kept)
		piece = p->keep[--p->kept];
	pthread_mutex_unlock(&p->lock);
	if (!piece)
		piece = aligned_alloc(ALIGN, p->size);
	if (!piece)
		pool_close(p);
	return piece;
}

void pool_give(struct pool *p, void *piece)
{
	pthread_mutex_lock(&p->lock);
	if (p->kept < sizeof(p->keep) / sizeof(p->keep[0])) {
		p->keep[p->kept++] = piece;
		piece = NULL;
	}
	drop(p);
	free(piece);
}
