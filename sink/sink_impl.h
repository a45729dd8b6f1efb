/* SPDX-License-Identifier: BSD-3-Clause */
/* Between sink.c, which opens, salvages and closes, and the two ways of writing. */
#ifndef RINGTAP_SINK_SINK_IMPL_H
#define RINGTAP_SINK_SINK_IMPL_H

#include "sink.h"

struct direct;

struct sink {
	int fd; /* through the page cache */
	bool regular;
	bool created; /* by sink_open() */
	char *path;
	struct sink_options options;
	struct direct *direct; /* NULL: plain writes */
	uint64_t offset;       /* bytes taken from the caller */
	uint64_t call_start;   /* offset where the current sink_write() began: a block boundary */
	uint64_t call_packets; /* packets before call_start */
	int error;             /* first error, negative; 0: none */
	/* After an error: everything before good_end is in the file, and checkpoint is a block
	 * boundary at or before it. */
	uint64_t good_end;
	uint64_t checkpoint;
	uint64_t packets; /* before checkpoint */
};

/* Writes everything with plain calls; *done counts what went out. 0 or -errno. */
int fd_write(
	int fd, struct iovec *iov, unsigned count, uint64_t *done, struct sink_patience *patience);
int fd_pwrite(int fd, const uint8_t *data, uint64_t len, uint64_t offset, uint64_t *done);

/* NULL where io_uring or O_DIRECT cannot be had. fd stays the caller's. */
struct direct *direct_open(int fd);
/* These set error, good_end and checkpoint of the sink, too. */
int direct_write(struct sink *s, const struct iovec *iov, unsigned count);
int direct_flush(struct sink *s);
/* Waits for everything and writes what does not fill a buffer. */
int direct_finish(struct sink *s);
void direct_free(struct direct *d);

/* Last block boundary at or before end, for a file that has one at start. Adds the packets between
 * them to *packets. */
uint64_t salvage_end(
	int fd, enum sink_format format, uint64_t start, uint64_t end, uint64_t *packets);

#endif
