/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "in_root.h"

#define LINKS_MAX 40 /* as the kernel: path_resolution(7) */

static int close_with(int fd, int result)
{
	close(fd);
	return result;
}

/* Part by part: a link may have been put there meanwhile. */
int rt_open_plain(int root, const char *path, int flags)
{
	int at = openat(root, ".", (*path ? O_PATH | O_DIRECTORY : flags) | O_CLOEXEC);

	if (at < 0)
		return -errno;
	while (*path) {
		size_t n = strcspn(++path, "/");
		char part[NAME_MAX + 1];
		int next;

		if (n > NAME_MAX)
			return close_with(at, -ENAMETOOLONG);
		memcpy(part, path, n);
		part[n] = '\0';
		path += n;
		if (!n || !strcmp(part, ".") || !strcmp(part, ".."))
			return close_with(at, -EINVAL);
		next = openat(
			at, part, (*path ? O_PATH | O_DIRECTORY : flags) | O_NOFOLLOW | O_CLOEXEC);
		next = next < 0 ? -errno : next;
		close(at);
		if (next < 0)
			return next;
		at = next;
	}
	return at;
}

/* A path while its links are replaced. */
struct steps {
	char done[PATH_MAX], left[PATH_MAX];
	unsigned links;
};

static void drop_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* If what has been appended to done is a link: its target is left instead. */
static int replace_link(int root, struct steps *s)
{
	char rest[PATH_MAX], target[PATH_MAX];
	int fd = rt_open_plain(root, s->done, O_PATH);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || !S_ISLNK(st.st_mode))
		return close_with(fd, 0);
	n = readlinkat(fd, "", target, sizeof(target));
	close(fd);
	if (n < 0 || (size_t)n == sizeof(target) || s->links++ == LINKS_MAX)
		return -ELOOP;
	target[n] = '\0';
	if (*target == '/')
		s->done[0] = '\0';
	else
		drop_last(s->done);
	memcpy(rest, s->left, strlen(s->left) + 1);
	return snprintf(s->left, sizeof(s->left), "%s/%s", target, rest) < (int)sizeof(s->left)
		       ? 0
		       : -ENAMETOOLONG;
}

static int step(int root, struct steps *s)
{
	size_t skip = strspn(s->left, "/"), n = strcspn(s->left + skip, "/"), len = strlen(s->done);
	char part[PATH_MAX];

	memcpy(part, s->left + skip, n);
	part[n] = '\0';
	memmove(s->left, s->left + skip + n, strlen(s->left + skip + n) + 1);
	if (!n || !strcmp(part, "."))
		return 0;
	if (!strcmp(part, "..")) {
		drop_last(s->done);
		return 0;
	}
	if (len + n + 2 > sizeof(s->done))
		return -ENAMETOOLONG;
	s->done[len] = '/';
	memcpy(s->done + len + 1, part, n + 1);
	return replace_link(root, s);
}

static int resolve(int root, const char *path, struct steps *s)
{
	int ret = 0;

	if (strlen(path) >= sizeof(s->left))
		return -ENAMETOOLONG;
	s->links = 0;
	s->done[0] = '\0';
	memcpy(s->left, path, strlen(path) + 1);
	while (!ret && *s->left)
		ret = step(root, s);
	return ret;
}

int rt_open_by_steps(int root, const char *path, int flags)
{
	struct steps s;
	int ret = resolve(root, path, &s);

	return ret ? ret : rt_open_plain(root, s.done, flags);
}

int rt_plain_in_root(int root, const char *path, char *plain, size_t size)
{
	struct steps s;
	int ret = resolve(root, path, &s);

	if (ret)
		return ret;
	return snprintf(plain, size, "%s", s.done) < (int)size ? 0 : -ENAMETOOLONG;
}

int rt_open_in_root(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd >= 0)
		return fd;
	/* Some seccomp filters of containers say EPERM. */
	return errno == ENOSYS || errno == EPERM ? rt_open_by_steps(root, path, flags) : -errno;
}
