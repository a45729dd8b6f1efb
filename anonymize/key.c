/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

static int read_file(const char *path, uint8_t key[PSEUDONYM_KEY])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0)
		return -errno;
	ret = read_key(fd, key);
	close(fd);
	return ret;
}

/* Under another name, so that the file is whole from its beginning. */
static int make_file(const char *path, const uint8_t key[PSEUDONYM_KEY])
{
	char *name;
	int fd, ret;

	if (asprintf(&name, "%s.%d", path, getpid()) < 0)
		return -ENOMEM;
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ret = fd < 0 ? -errno : write_key(fd, key);
	if (fd >= 0 && close(fd) && !ret)
		ret = -errno;
	if (!ret && link(name, path))
		ret = -errno;
	if (fd >= 0)
		unlink(name);
	free(name);
	return ret;
}

/* Makes the file if it is missing. */
static int get(const char *path, uint8_t key[PSEUDONYM_KEY])
{
	int ret = read_file(path, key);

	if (ret != -ENOENT)
		return ret;
	ret = make(key);
	if (!ret)
		ret = make_file(path, key);
	return ret == -EEXIST ? read_file(path, key) : ret; /* another process has made it */
}

static bool is_same(const char *a, const char *b)
{
	struct stat x, y;

	return a && b && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
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
	case -EEXIST: return "the result has the same name; choose another one";
	default: return strerror(-error);
	}
}

struct pseudonyms *key_open(const char *command, const char *path, const char *output)
{
	uint8_t key[PSEUDONYM_KEY];
	int ret = path ? get(path, key) : make(key);
	struct pseudonyms *p;

	if (!ret && is_same(path, output))
		ret = -EEXIST;
	p = ret ? NULL : pseudonyms_new(key);

	explicit_bzero(key, sizeof(key));
	if (ret)
		message_print(
			"%s: --key: %s: %s", command, path ? path : "a random key", reason(ret));
	else if (!p)
		message_print("%s: not enough memory", command);
	return p;
}
