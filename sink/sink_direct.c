/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing to a disk file behind the caller's back.
 *
 *   caller --copy--> slot 0 | slot 1 | slot 2 | slot 3 --io_uring, O_DIRECT--> file
 *
 * A slot is written when it is full, always at a multiple of its size: aligned as O_DIRECT
 * requires. What does not fill a slot is written through the page cache: at the end, and by flush,
 * after which the full slot is written over it. Both at once on different pages of a file is well
 * defined; the same pages are never in flight both ways, as flush does nothing while a slot is in
 * flight.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sink_impl.h"

#define SLOT_COUNT 4u
#define SLOT_SIZE  (4u << 20)
#define SLOT_ALIGN (2u << 20) /* huge pages make pinning cheap */

struct slot {
	uint8_t *data;
	uint64_t offset;     /* in the file */
	uint64_t checkpoint; /* block boundary at or before offset */
	uint64_t packets;    /* before checkpoint */
	uint64_t done;       /* bytes that are in the file */
	bool in_flight;
	int error;
};

struct direct {
	struct io_uring ring;
	int fd;    /* buffered, the sink's */
	int dio;   /* the same file with O_DIRECT */
	bool lost; /* O_DIRECT was refused after all */
	uint8_t *memory;
	struct slot slots[SLOT_COUNT];
	unsigned current;
	unsigned in_flight;
	uint64_t fill;    /* bytes in the current slot */
	uint64_t flushed; /* bytes already written by flush */
};

/* Setting up io_uring and faulting in the buffers costs milliseconds, too long for the next file of
 * a ring buffer: what the last file used is kept. */
static struct direct *spare;

static void free_memory(struct direct *d)
{
	/* A later allocation of it may be used after a fork. */
	madvise(d->memory, SLOT_COUNT * SLOT_SIZE, MADV_DOFORK);
	free(d->memory);
}

static struct direct *direct_new(void)
{
	struct direct *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->memory = aligned_alloc(SLOT_ALIGN, SLOT_COUNT * SLOT_SIZE);
	if (!d->memory)
		goto err_free;
	madvise(d->memory, SLOT_COUNT * SLOT_SIZE, MADV_HUGEPAGE);
	/* A buffer that grows forks, see rt_collapse_aside(): copying on write would leave small
	 * pages, a write of 4 MiB would have 1024 pieces instead of 2. */
	madvise(d->memory, SLOT_COUNT * SLOT_SIZE, MADV_DONTFORK);
	memset(d->memory, 0, SLOT_COUNT * SLOT_SIZE);
	/* Refused by kernel.io_uring_disabled, by seccomp in containers, by small memlock limits.
	 */
	if (io_uring_queue_init(2 * SLOT_COUNT, &d->ring, 0) < 0)
		goto err_memory;
	return d;

err_memory:
	free_memory(d);
err_free:
	free(d);
	return NULL;
}

static void direct_delete(struct direct *d)
{
	io_uring_queue_exit(&d->ring);
	free_memory(d);
	free(d);
}

static void reset(struct direct *d, int fd, int dio)
{
	d->fd = fd;
	d->dio = dio;
	d->lost = false;
	d->current = d->in_flight = 0;
	d->fill = d->flushed = 0;
	for (unsigned i = 0; i < SLOT_COUNT; i++)
		d->slots[i] = (struct slot){.data = d->memory + (size_t)i * SLOT_SIZE};
}

struct direct *direct_open(int fd)
{
	struct direct *d;
	char path[64];
	int dio;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	dio = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
	if (dio < 0)
		return NULL;
	d = spare ? spare : direct_new();
	spare = NULL;
	if (d)
		reset(d, fd, dio);
	else
		close(dio);
	return d;
}

static int submit(struct direct *d, struct slot *s)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);
	int ret;

	if (!sqe)
		return -EBUSY;
	io_uring_prep_write(sqe, d->dio, s->data + s->done, (unsigned)(SLOT_SIZE - s->done),
		s->offset + s->done);
	io_uring_sqe_set_data(sqe, s);
	do {
		ret = io_uring_submit(&d->ring);
	} while (ret == -EINTR || ret == -EAGAIN);
	if (ret < 0)
		return ret;
	s->in_flight = true;
	d->in_flight++;
	return 0;
}

/* The rest of a slot by plain writing: where O_DIRECT is refused, or a short write left an end that
 * is not aligned. */
static void write_buffered(struct direct *d, struct slot *s)
{
	s->error = fd_pwrite(d->fd, s->data, SLOT_SIZE, s->offset, &s->done);
}

static void completed(struct direct *d, struct slot *s, int res)
{
	s->in_flight = false;
	d->in_flight--;
	if (res > 0)
		s->done += (unsigned)res;
	if (res == -EINVAL || res == -EOPNOTSUPP) {
		d->lost = true;
		write_buffered(d, s);
	} else if (res < 0 && res != -EINTR && res != -EAGAIN) {
		s->error = res;
	} else if (s->done < SLOT_SIZE) {
		/* A disk that fills up gives a short write first, then the error. */
		if (s->done % 4096)
			write_buffered(d, s);
		else
			s->error = submit(d, s);
	}
}

/* Takes one completion; waits for it if wait. Returns 1, 0 if there is none, -errno. */
static int reap(struct direct *d, bool wait)
{
	struct io_uring_cqe *cqe;
	struct slot *s;
	int res;
	int ret;

	do {
		ret = wait ? io_uring_wait_cqe(&d->ring, &cqe) : io_uring_peek_cqe(&d->ring, &cqe);
	} while (ret == -EINTR);
	if (ret)
		return ret == -EAGAIN ? 0 : ret;
	s = io_uring_cqe_get_data(cqe);
	res = cqe->res;
	io_uring_cqe_seen(&d->ring, cqe);
	completed(d, s, res);
	return 1;
}

/* The failed slot that stands first in the file, NULL if none failed. */
static struct slot *first_failed(struct direct *d)
{
	struct slot *bad = NULL;

	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		struct slot *s = &d->slots[i];

		if (s->error && (!bad || s->offset < bad->offset))
			bad = s;
	}
	return bad;
}

/* Waits until all is quiet, so that nothing is written behind the place where the file is cut. */
static int fail(struct sink *sink, int error)
{
	struct direct *d = sink->direct;
	struct slot *bad;

	while (d->in_flight && reap(d, true) > 0)
		;
	/* If io_uring itself fails, what it still holds counts as lost. */
	for (unsigned i = 0; i < SLOT_COUNT; i++)
		if (d->slots[i].in_flight)
			d->slots[i].error = error;
	bad = first_failed(d);
	sink->error = bad ? bad->error : error;
	if (!bad)
		bad = &d->slots[d->current];
	sink->good_end = bad->offset + bad->done;
	sink->checkpoint = bad->checkpoint;
	sink->packets = bad->packets;
	return sink->error;
}

static int submit_current(struct sink *sink)
{
	struct direct *d = sink->direct;
	struct slot *s = &d->slots[d->current];
	int ret = 0;

	if (d->lost)
		write_buffered(d, s);
	else
		s->error = submit(d, s);
	if (s->error)
		return fail(sink, s->error);
	d->current = (d->current + 1) % SLOT_COUNT;
	d->fill = 0;
	d->flushed = 0;
	s = &d->slots[d->current];
	while (ret >= 0 && (s->in_flight || reap(d, false) > 0))
		ret = s->in_flight ? reap(d, true) : 0;
	if (ret < 0 || first_failed(d))
		return fail(sink, ret);
	return 0;
}

int direct_write(struct sink *sink, const struct iovec *iov, unsigned count)
{
	struct direct *d = sink->direct;

	for (unsigned i = 0; i < count; i++) {
		const uint8_t *from = iov[i].iov_base;
		uint64_t left = iov[i].iov_len;

		while (left) {
			struct slot *s = &d->slots[d->current];
			uint64_t n = SLOT_SIZE - d->fill < left ? SLOT_SIZE - d->fill : left;

			if (!d->fill) {
				s->offset = sink->offset;
				s->checkpoint = sink->call_start;
				s->packets = sink->call_packets;
				s->done = 0;
			}
			memcpy(s->data + d->fill, from, n);
			from += n;
			left -= n;
			d->fill += n;
			sink->offset += n;
			if (d->fill == SLOT_SIZE && submit_current(sink))
				return sink->error;
		}
	}
	return 0;
}

/* Bytes in the current slot that are not yet in the file. */
static int write_rest(struct sink *sink)
{
	struct direct *d = sink->direct;
	struct slot *s = &d->slots[d->current];
	int ret;

	s->done = d->flushed;
	ret = fd_pwrite(d->fd, s->data, d->fill, s->offset, &s->done);
	d->flushed = s->done;
	if (ret) {
		s->error = ret;
		return fail(sink, ret);
	}
	s->done = 0;
	return 0;
}

int direct_flush(struct sink *sink)
{
	struct direct *d = sink->direct;

	while (d->in_flight && reap(d, false) > 0)
		;
	if (first_failed(d))
		return fail(sink, 0);
	if (d->in_flight || d->flushed == d->fill)
		return 0;
	return write_rest(sink);
}

int direct_finish(struct sink *sink)
{
	struct direct *d = sink->direct;
	int ret = 0;

	while (d->in_flight && ret >= 0)
		ret = reap(d, true);
	if (ret < 0 || first_failed(d))
		return fail(sink, ret);
	return d->fill ? write_rest(sink) : 0;
}

void direct_free(struct direct *d)
{
	if (!d)
		return;
	close(d->dio);
	/* After a failure of io_uring itself writes may still be under way. */
	if (d->in_flight || spare)
		direct_delete(d);
	else
		spare = d;
}
