/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the bytes go. The caller writes whole blocks (or whole compressed frames); whatever fails,
 * a regular file ends up with whole blocks only.
 *
 *   sink_fd      pipes, devices, tmpfs: writev() straight from the caller's memory
 *   sink_direct  files on disk: copies into aligned buffers, io_uring and O_DIRECT behind the
 *                caller's back, so that neither the page cache nor the disk holds up the rings
 */
#ifndef RINGTAP_SINK_SINK_H
#define RINGTAP_SINK_SINK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum sink_format { SINK_PCAPNG, SINK_PCAP, SINK_OPAQUE };

/* Shared with signal handlers. */
struct sink_patience {
	volatile sig_atomic_t give_up; /* a write that has to wait fails with -ECANCELED */
	volatile sig_atomic_t stalled; /* set to 0 whenever something was written */
};

struct sink_options {
	enum sink_format format;        /* how to find whole blocks after a failure */
	bool group_read;                /* mode 0640 instead of 0600 */
	bool no_direct;                 /* never sink_direct */
	struct sink_patience *patience; /* NULL: waits for the reader of a pipe for ever */
};

struct sink;

/* Opens path, "-" for standard output. A file that exists keeps its content until sink_start(). 0
 * or -errno, for packet_file_error(). */
int sink_open(struct sink **out, const char *path, const struct sink_options *options);
/* Empties the file. 0 or -errno. */
int sink_start(struct sink *s);
/* Writes all of iov, which is used up; the memory is the caller's again on return. iov holds whole
 * blocks altogether, and packets of them stand before it in the file. 0 or -errno, which then
 * sticks: an error may be that of an earlier write. */
int sink_write(struct sink *s, struct iovec *iov, unsigned count, uint64_t packets);
/* Shows readers of the file what has been written, unless that needs waiting. -EPIPE: the reader of
 * a pipe has gone. */
int sink_flush(struct sink *s);
/* Finishes and frees. *bytes becomes what the file holds (or the pipe got). Returns the first error
 * of all, after the file was cut to whole blocks; *packets are those that are left in it then. */
int sink_close(struct sink *s, uint64_t *bytes, uint64_t *packets);
/* Frees a sink that was not started, and removes the file if sink_open() made it. */
void sink_abandon(struct sink *s);
/* "io_uring", "write": for the curious and for tests. */
const char *sink_kind(const struct sink *s);

#endif
