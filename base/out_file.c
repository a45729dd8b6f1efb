/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out_file.h"
#include "packet_file.h"
#include "util.h"

int out_file_open(struct out_file *o, const char *command, const char *path)
{
	return out_file_open_packets(o, command, path, false);
}

int out_file_open_packets(
	struct out_file *o, const char *command, const char *path, bool group_read)
{
	bool created;
	int fd;

	*o = (struct out_file){.path = path};
	if (!path)
		return 0;
	fd = packet_file_open(path, group_read, &created);
	/* Devices and pipes cannot be truncated. */
	o->f = fd < 0 || (ftruncate(fd, 0) && errno != EINVAL) ? NULL : fdopen(fd, "w");
	if (o->f)
		return 0;
	message_print("%s: %s: %s", command, path, packet_file_error(fd < 0 ? fd : -errno));
	if (fd >= 0)
		close(fd);
	return -EIO;
}

int out_file_check(const char *command, const char *path, const char *const *inputs, unsigned count)
{
	struct stat a, b;

	if (!path || stat(path, &a) || !S_ISREG(a.st_mode))
		return 0;
	for (unsigned i = 0; i < count; i++) {
		if (stat(inputs[i], &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
			continue;
		return message_fail(-EINVAL,
			"%s: %s: that is the recording itself; give another name", command, path);
	}
	return 0;
}

int out_file_close(struct out_file *o, const char *command, int error)
{
	struct stat st = {0};
	bool removed;

	if (!o->f)
		return 0;
	errno = EIO;
	if (!error && (ferror(o->f) || fflush(o->f)))
		error = -errno;
	(void)fstat(fileno(o->f), &st);
	if (fclose(o->f) && !error)
		error = -errno;
	o->f = NULL;
	/* Devices and pipes stay. */
	removed = S_ISREG(st.st_mode) && (error || !st.st_size) && !unlink(o->path);
	if (error)
		message_print("%s: %s: %s%s%s", command, o->path, strerror(-error),
			removed ? "; the file is incomplete and was removed" : "",
			write_advice(error));
	return error;
}
