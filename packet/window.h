/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a file, read forwards. Not mapped: a file that another process cuts short must not
 * end this one by a signal, and mapped pages would count as memory of this process. */
#ifndef RINGTAP_PACKET_WINDOW_H
#define RINGTAP_PACKET_WINDOW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct window {
	const uint8_t *buf; /* the file's bytes from offset at to end */
	uint64_t at, end;
	uint8_t *own; /* the buffer; NULL: memory */
	size_t room;
	int fd; /* -1: none */
	/* Reads up to len bytes from offset on into dst: how many; 0 at the end; -errno. */
	ssize_t (*read)(struct window *w, uint8_t *dst, size_t len, uint64_t offset);
	void (*close)(struct window *w); /* or NULL */
	void *source;                    /* context of these functions */
};

/* fd stays the caller's. 0 or -ENOMEM. Close it in any case. */
int window_open(struct window *w, int fd);
/* data must live as long as w. */
void window_memory(struct window *w, const void *data, size_t len);
/* The same file or memory, of the two functions above. 0 or -ENOMEM. Close it in any case. */
int window_again(struct window *w, const struct window *of);
void window_close(struct window *w);
/* Reads on, see window_peek(). */
ssize_t window_fill(struct window *w, uint64_t offset, size_t n, const uint8_t **p);

/* Makes n bytes from offset on readable at *p, until the next call. How many there are, fewer than
 * n only at the end of the file; -errno. offset must not lie before that of the last call. */
static inline ssize_t window_peek(struct window *w, uint64_t offset, size_t n, const uint8_t **p)
{
	if (__builtin_expect(offset > w->end || w->end - offset < n, 0))
		return window_fill(w, offset, n, p);
	*p = w->buf + (offset - w->at);
	return (ssize_t)(w->end - offset);
}

#endif
