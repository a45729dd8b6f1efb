/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/packet_file.h"
#include "sink_impl.h"

/* Memory file systems take O_DIRECT nowadays, but there is nothing to win. */
static bool on_disk(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC;
}

int sink_open(struct sink **out, const char *path, const struct sink_options *options)
{
	struct sink *s = calloc(1, sizeof(*s));
	struct stat st;
	int ret = -ENOMEM;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->path = strdup(path);
	if (!s->path)
		goto err;
	if (strcmp(path, "-"))
		ret = packet_file_open(path, options->group_read, &s->created);
	else if ((ret = dup(STDOUT_FILENO)) < 0)
		ret = -errno;
	if (ret < 0)
		goto err;
	s->fd = ret;
	/* Standard output may be shared, or opened for appending: others' data stand before ours,
	 * and only plain writes go where they should. */
	s->regular = strcmp(path, "-") && !fstat(s->fd, &st) && S_ISREG(st.st_mode);
	/* Before anything is captured, as it takes a while. */
	if (s->regular && !s->options.no_direct && on_disk(s->fd))
		s->direct = direct_open(s->fd);
	*out = s;
	return 0;
err:
	free(s->path);
	free(s);
	return ret;
}

int sink_start(struct sink *s)
{
	if (s->regular && ftruncate(s->fd, 0) < 0)
		return -errno;
	return 0;
}

static int plain_write(struct sink *s, struct iovec *iov, unsigned count)
{
	uint64_t done = 0;
	int ret = fd_write(s->fd, iov, count, &done, s->options.patience);

	s->offset += done;
	if (ret) {
		s->error = ret;
		s->good_end = s->offset;
		s->checkpoint = s->call_start;
		s->packets = s->call_packets;
	}
	return ret;
}

int sink_write(struct sink *s, struct iovec *iov, unsigned count, uint64_t packets)
{
	if (s->error)
		return s->error;
	s->call_start = s->offset;
	s->call_packets = packets;
	return s->direct ? direct_write(s, iov, count) : plain_write(s, iov, count);
}

/* Without packets there is no write that would fail when a pipe's reader has closed it. */
static int check_reader(const struct sink *s)
{
	struct pollfd p = {.fd = s->fd};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP) ? -EPIPE : 0;
}

int sink_flush(struct sink *s)
{
	if (s->error || s->regular)
		return s->error || !s->direct ? s->error : direct_flush(s);
	return check_reader(s);
}

/* Cuts a file that could not be written to its end. Some file systems report a full disk only on
 * close; there is nothing to cut then, as the missing part is unknown. */
static void salvage(struct sink *s)
{
	uint64_t end =
		salvage_end(s->fd, s->options.format, s->checkpoint, s->good_end, &s->packets);

	if (!ftruncate(s->fd, (off_t)end))
		s->offset = end;
}

int sink_close(struct sink *s, uint64_t *bytes, uint64_t *packets)
{
	int ret;

	if (s->direct && !s->error)
		direct_finish(s);
	direct_free(s->direct);
	if (s->error && s->regular)
		salvage(s);
	ret = s->error;
	if (close(s->fd) < 0 && !ret)
		ret = -errno;
	*bytes = s->offset;
	if (s->error)
		*packets = s->packets;
	free(s->path);
	free(s);
	return ret;
}

void sink_abandon(struct sink *s)
{
	char *file = s->created ? realpath(s->path, NULL) : NULL; /* a link stays */

	direct_free(s->direct);
	if (file)
		unlink(file);
	free(file);
	close(s->fd);
	free(s->path);
	free(s);
}

const char *sink_kind(const struct sink *s)
{
	return s->direct ? "io_uring" : "write";
}
