/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "window.h"

/* Bytes of a read: it stays in the second level of caches until it has been decoded. */
#define CHUNK (256u << 10)

static ssize_t read_file(struct window *w, uint8_t *dst, size_t len, uint64_t offset)
{
	ssize_t n;

	do
		n = pread(w->fd, dst, len, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int window_open(struct window *w, int fd)
{
	*w = (struct window){.fd = fd, .room = CHUNK, .own = malloc(CHUNK), .read = read_file};
	w->buf = w->own;
	if (!w->own)
		return -ENOMEM;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

void window_memory(struct window *w, const void *data, size_t len)
{
	*w = (struct window){.fd = -1, .buf = data, .end = len};
}

int window_again(struct window *w, const struct window *of)
{
	if (of->fd >= 0)
		return window_open(w, of->fd);
	*w = *of;
	return 0;
}

void window_close(struct window *w)
{
	if (w->close)
		w->close(w);
	free(w->own);
	*w = (struct window){.fd = -1};
}

/* Drops bytes that are no longer used, and makes room for n bytes from offset on. */
static int make_room(struct window *w, uint64_t offset, size_t n)
{
	size_t keep = offset < w->end ? (size_t)(w->end - offset) : 0;

	memmove(w->own, w->own + (w->end - w->at - keep), keep);
	w->at = offset;
	w->end = offset + keep;
	if (rt_array_room(w->own, w->room, n))
		return -ENOMEM;
	w->buf = w->own;
	return 0;
}

ssize_t window_fill(struct window *w, uint64_t offset, size_t n, const uint8_t **p)
{
	int ret;

	if (!w->read) {
		*p = w->buf + (offset < w->end ? offset : w->end);
		return offset < w->end ? (ssize_t)(w->end - offset) : 0;
	}
	ret = make_room(w, offset, n);
	if (ret)
		return ret;
	while (w->end - w->at < n) {
		size_t have = (size_t)(w->end - w->at);
		ssize_t got = w->read(w, w->own + have, w->room - have, w->end);

		if (got < 0)
			return got;
		if (!got)
			break;
		w->end += (size_t)got;
	}
	*p = w->own;
	return (ssize_t)(w->end - w->at);
}
