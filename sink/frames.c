/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/threads.h"
#include "compress.h"
#include "frames.h"

struct frame {
	struct compressor *compressor;
	uint8_t *in; /* NULL where the calling thread compresses */
	size_t in_len, in_size;
	struct iovec out; /* the compressor's */
	uint64_t packets;
	int error;
	bool done; /* under the lock */
};

struct frames {
	struct frame *ring; /* frame n is at n % count */
	uint64_t count;
	uint64_t begun;   /* the frame that is being filled; under the lock */
	uint64_t started; /* the next to be compressed; under the lock */
	uint64_t taken;   /* the oldest that was not taken */
	pthread_t *threads;
	unsigned thread_count;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	bool quit; /* under the lock */
};

static struct frame *frame(const struct frames *f, uint64_t n)
{
	return &f->ring[n % f->count];
}

static void compress_whole(struct frame *r)
{
	r->error = compressor_put(r->compressor, r->in, r->in_len);
	/* Also after an error: the next frame begins again. */
	int ret = compressor_end(r->compressor, &r->out.iov_base, &r->out.iov_len);

	r->error = r->error ? r->error : ret;
}

static void *work(void *arg)
{
	struct frames *f = arg;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct frame *r;

		while (!f->quit && f->started == f->begun)
			pthread_cond_wait(&f->work, &f->lock);
		if (f->quit)
			break;
		r = frame(f, f->started++);
		pthread_mutex_unlock(&f->lock);
		compress_whole(r);
		pthread_mutex_lock(&f->lock);
		r->done = true;
		pthread_cond_signal(&f->done);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static int start_threads(struct frames *f, unsigned count)
{
	int ret = 0;

	f->threads = calloc(count, sizeof(*f->threads));
	if (!f->threads)
		return -ENOMEM;
	while (f->thread_count < count && !ret) {
		ret = rt_thread_start(&f->threads[f->thread_count], work, f);
		f->thread_count += !ret;
	}
	return ret;
}

int frames_new(struct frames **out, enum compress kind, unsigned threads)
{
	struct frames *f = calloc(1, sizeof(*f));
	int ret = 0;

	*out = NULL;
	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->done, NULL);
	/* Besides those that are compressed, one that is filled and one that waits. */
	f->count = threads > 1 ? threads + 1 : 1;
	f->ring = calloc(f->count, sizeof(*f->ring));
	ret = f->ring ? 0 : -ENOMEM;
	for (uint64_t i = 0; i < f->count && !ret; i++)
		ret = compressor_new(&f->ring[i].compressor, kind);
	if (!ret && threads > 1)
		ret = start_threads(f, threads - 1);
	if (ret)
		frames_free(f);
	else
		*out = f;
	return ret;
}

void frames_free(struct frames *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->quit = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->thread_count; i++)
		pthread_join(f->threads[i], NULL);
	for (uint64_t i = 0; f->ring && i < f->count; i++) {
		compressor_free(f->ring[i].compressor);
		free(f->ring[i].in);
	}
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->done);
	pthread_mutex_destroy(&f->lock);
	free(f->threads);
	free(f->ring);
	free(f);
}

static int append(struct frame *r, const void *data, size_t len)
{
	if (rt_array_room(r->in, r->in_size, r->in_len + len))
		return -ENOMEM;
	memcpy(r->in + r->in_len, data, len);
	r->in_len += len;
	return 0;
}

int frames_put(struct frames *f, const void *data, size_t len)
{
	struct frame *r = frame(f, f->begun);

	if (f->thread_count)
		return append(r, data, len);
	return compressor_put(r->compressor, data, len);
}

uint64_t frames_pending(const struct frames *f)
{
	const struct frame *r = frame(f, f->begun);

	if (frames_full(f))
		return 0;
	return f->thread_count ? r->in_len : compressor_pending(r->compressor);
}

void frames_end(struct frames *f, uint64_t packets)
{
	struct frame *r = frame(f, f->begun);

	r->packets = packets;
	r->done = !f->thread_count;
	if (r->done)
		r->error = compressor_end(r->compressor, &r->out.iov_base, &r->out.iov_len);
	pthread_mutex_lock(&f->lock);
	f->begun++;
	pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
}

bool frames_full(const struct frames *f)
{
	return f->begun - f->taken == f->count;
}

int frames_take(struct frames *f, bool wait, struct iovec *data, uint64_t *packets)
{
	struct frame *r = frame(f, f->taken);
	bool done;

	if (f->taken == f->begun)
		return 0;
	pthread_mutex_lock(&f->lock);
	while (wait && !r->done)
		pthread_cond_wait(&f->done, &f->lock);
	done = r->done;
	pthread_mutex_unlock(&f->lock);
	if (!done)
		return 0;
	f->taken++;
	r->in_len = 0;
	*data = r->out;
	*packets = r->packets;
	return r->error ? r->error : 1;
}
