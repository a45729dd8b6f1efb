/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "key.h"

#define DIGITS (2 * PSEUDONYM_KEY)

static int make(uint8_t key[PSEUDONYM_KEY])
{
	ssize_t n = getrandom(key, PSEUDONYM_KEY, 0);

	return n == PSEUDONYM_KEY ? 0 : n < 0 ? -errno : -EIO;
}

static int write_key(int fd, const uint8_t key[PSEUDONYM_KEY])
{
	char text[DIGITS + 2];
	ssize_t n;

	for (unsigned i = 0; i < PSEUDONYM_KEY; i++)
		snprintf(text + 2 * i, 3, "%02x", key[i]);
	text[DIGITS] = '\n';
	n = write(fd, text, DIGITS + 1);
	explicit_bzero(text, sizeof(text));
	return n == DIGITS + 1 ? 0 : n < 0 ? -errno : -EIO;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse(const char *text, ssize_t len, uint8_t key[PSEUDONYM_KEY])
{
	if (len < (ssize_t)DIGITS || len > (ssize_t)DIGITS + 1 ||
		(len > (ssize_t)DIGITS && text[DIGITS] != '\n'))
		return -EINVAL;
	for (unsigned i = 0; i < PSEUDONYM_KEY; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static int read_key(int fd, uint8_t key[PSEUDONYM_KEY])
{
	char text[DIGITS + 2];
	struct stat st;
	ssize_t n;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((st.st_uid != geteuid() && st.st_uid) || st.st_mode & 077)
		return -EPERM;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	ret = parse(text, n, key);
	explicit_bzero(text, sizeof(text));
	return ret;
}

/* Makes the file, if nobody has. */
static int get(const char *path, uint8_t key[PSEUDONYM_KEY])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd >= 0) {
		ret = read_key(fd, key);
		close(fd);
		return ret;
	}
	if (errno != ENOENT)
		return -errno;
	ret = make(key);
	if (ret)
		return ret;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = write_key(fd, key);
	if (close(fd) && !ret)
		ret = -errno;
	if (ret)
		unlink(path);
	return ret;
}

static const char *reason(int error)
{
	switch (error) {
	case -EPERM:
		return "it is another user's, or other users may read it; choose another file, or "
		       "run chmod 600";
	case -EINVAL:
		return "it has no key, which is 64 hexadecimal digits; a file that is missing is "
		       "made";
	default: return strerror(-error);
	}
}

struct pseudonyms *key_open(const char *command, const char *path)
{
	uint8_t key[PSEUDONYM_KEY];
	int ret = path ? get(path, key) : make(key);
	struct pseudonyms *p = ret ? NULL : pseudonyms_new(key);

	explicit_bzero(key, sizeof(key));
	if (ret)
		message_print(
			"%s: --key: %s: %s", command, path ? path : "a random key", reason(ret));
	else if (!p)
		message_print("%s: not enough memory", command);
	return p;
}
