/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"

#define ALIGN      64u
#define ALIGNED(n) (((n) + ALIGN - 1) & ~(size_t)(ALIGN - 1))
#define WORDS      4u  /* entries of a dictionary */
#define TEXTS      64u /* bytes of all of them */

/* References of the consumer to a batch. Arrays may be moved out of their parent, so each of them
 * holds a reference to the whole. */
struct exported {
	pthread_mutex_t lock;
	unsigned refs;
	struct ArrowArray child[BATCH_COLUMNS], *children[BATCH_COLUMNS];
	struct ArrowArray dictionary[BATCH_COLUMNS];
	const void *buffers[BATCH_COLUMNS][2];
	const void *texts[BATCH_COLUMNS][3];
	int32_t ends[BATCH_COLUMNS][WORDS + 1];
	char text[BATCH_COLUMNS][TEXTS];
	const void *none;
};

/* The batch, its exported form, and the bitmap and values of each column. */
size_t batch_size(const struct batch_kind *k)
{
	size_t size = ALIGNED(sizeof(struct batch)) + ALIGNED(sizeof(struct exported));

	for (uint32_t i = 0; i < k->count; i++)
		size += ALIGNED(k->rows / 8) + ALIGNED((size_t)k->rows * k->columns[i].width);
	return size;
}

struct batch *batch_new(const struct batch_kind *k, struct pool *pool)
{
	uint8_t *p = pool_take(pool);
	struct batch *b = (struct batch *)p;

	if (!b)
		return NULL;
	*b = (struct batch){.kind = k, .pool = pool};
	p += ALIGNED(sizeof(*b));
	b->exported = (struct exported *)p;
	p += ALIGNED(sizeof(*b->exported));
	for (uint32_t i = 0; i < k->count; i++) {
		b->valid[i] = (uint32_t *)p;
		p += ALIGNED(k->rows / 8);
		b->column[i] = p;
		p += ALIGNED((size_t)k->rows * k->columns[i].width);
	}
	return b;
}

void batch_free(struct batch *b)
{
	if (b)
		pool_give(b->pool, b);
}

/* ---- validity ---- */

/* Bit c of word r becomes bit r of word c: swaps blocks of 16, 8, ... bits (Hacker's Delight, 7-3,
 * with the lowest bit first). */
static void transpose(uint32_t m[32])
{
	uint32_t mask = 0x0000ffff;

	for (unsigned j = 16; j; j >>= 1, mask ^= mask << j)
		for (unsigned k = 0; k < 32; k = (k + j + 1) & ~j) {
			uint32_t t = (m[k] >> j ^ m[k + j]) & mask;

			m[k] ^= t << j;
			m[k + j] ^= t;
		}
}

void batch_flush(struct batch *b)
{
	uint32_t rest = b->rows % 32, n = rest ? rest : 32;
	uint32_t word = (b->rows - n) / 32;

	for (uint32_t i = n; i < 32; i++)
		b->has[i] = 0;
	transpose(b->has);
	for (uint32_t i = 0; i < b->kind->count; i++) {
		b->valid[i][word] = b->has[i];
		b->nulls[i] += n - (uint32_t)__builtin_popcount(b->has[i]);
	}
}

/* ---- arrays ---- */

static void unref(struct batch *b)
{
	unsigned refs;

	pthread_mutex_lock(&b->exported->lock);
	refs = --b->exported->refs;
	pthread_mutex_unlock(&b->exported->lock);
	if (refs)
		return;
	pthread_mutex_destroy(&b->exported->lock);
	batch_free(b);
}

static void release_array(struct ArrowArray *a)
{
	struct batch *b = a->private_data;

	for (int64_t i = 0; i < a->n_children; i++)
		if (a->children[i]->release)
			a->children[i]->release(a->children[i]);
	if (a->dictionary && a->dictionary->release)
		a->dictionary->release(a->dictionary);
	a->release = NULL;
	unref(b);
}

static void export_dictionary(struct batch *b, uint32_t i)
{
	const struct column_kind *c = &b->kind->columns[i];
	struct exported *e = b->exported;
	size_t at = 0;

	for (unsigned n = 0; n < c->words; n++) {
		size_t len = strlen(c->word[n]);

		e->ends[i][n] = (int32_t)at;
		memcpy(e->text[i] + at, c->word[n], len);
		at += len;
	}
	e->ends[i][c->words] = (int32_t)at;
	e->texts[i][0] = NULL;
	e->texts[i][1] = e->ends[i];
	e->texts[i][2] = e->text[i];
	e->dictionary[i] = (struct ArrowArray){.length = c->words,
		.n_buffers = 3,
		.buffers = e->texts[i],
		.release = release_array,
		.private_data = b};
	e->child[i].dictionary = &e->dictionary[i];
	e->refs++;
}

static void export_column(struct batch *b, uint32_t i)
{
	struct exported *e = b->exported;
	int64_t nulls = b->kind->columns[i].required ? 0 : b->nulls[i];

	e->buffers[i][0] = nulls ? b->valid[i] : NULL;
	e->buffers[i][1] = b->column[i];
	e->child[i] = (struct ArrowArray){.length = b->rows,
		.null_count = nulls,
		.n_buffers = 2,
		.buffers = e->buffers[i],
		.release = release_array,
		.private_data = b};
	e->children[i] = &e->child[i];
	e->refs++;
	if (b->kind->columns[i].words)
		export_dictionary(b, i);
}

void batch_export(struct batch *b, struct ArrowArray *out)
{
	struct exported *e = b->exported;

	if (b->rows % 32)
		batch_flush(b);
	pthread_mutex_init(&e->lock, NULL);
	e->refs = 1;
	e->none = NULL;
	for (uint32_t i = 0; i < b->kind->count; i++)
		export_column(b, i);
	*out = (struct ArrowArray){.length = b->rows,
		.n_buffers = 1,
		.n_children = b->kind->count,
		.buffers = &e->none,
		.children = e->children,
		.release = release_array,
		.private_data = b};
}

/* ---- schema ---- */

struct schema {
	struct ArrowSchema child[BATCH_COLUMNS], *children[BATCH_COLUMNS];
};

static void release_child(struct ArrowSchema *s)
{
	if (s->dictionary && s->dictionary->release)
		s->dictionary->release(s->dictionary);
	free(s->dictionary);
	s->release = NULL;
}

static void release_schema(struct ArrowSchema *s)
{
	for (int64_t i = 0; i < s->n_children; i++)
		if (s->children[i]->release)
			s->children[i]->release(s->children[i]);
	free(s->private_data);
	s->release = NULL;
}

static int schema_column(const struct column_kind *c, struct ArrowSchema *s)
{
	*s = (struct ArrowSchema){.format = c->format,
		.name = c->name,
		.flags = c->required ? 0 : ARROW_FLAG_NULLABLE,
		.release = release_child};
	if (!c->words)
		return 0;
	s->dictionary = calloc(1, sizeof(*s->dictionary));
	if (!s->dictionary)
		return -ENOMEM;
	*s->dictionary = (struct ArrowSchema){
		.format = "u", .name = "", .flags = ARROW_FLAG_NULLABLE, .release = release_child};
	return 0;
}

int batch_schema(const struct batch_kind *k, struct ArrowSchema *out)
{
	struct schema *s = calloc(1, sizeof(*s));
	int ret = 0;

	if (!s)
		return -ENOMEM;
	for (uint32_t i = 0; i < k->count; i++) {
		s->children[i] = &s->child[i];
		ret = ret ? ret : schema_column(&k->columns[i], &s->child[i]);
	}
	*out = (struct ArrowSchema){.format = "+s",
		.name = "",
		.n_children = k->count,
		.children = s->children,
		.release = release_schema,
		.private_data = s};
	if (ret)
		release_schema(out);
	return ret;
}
