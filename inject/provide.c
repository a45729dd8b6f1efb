/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process in another mount namespace does not see the files of the probe. It gets copies in a
 * folder of its own file system, reached by /proc/PID/root, which are removed when it has loaded
 * them. Not a memfd: the probe finds its objects beside itself, and a descriptor that is left
 * behind by a killed tracer would be the application's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "provide.h"

#define OBJECTS      "ringtap"       /* the folder beside the probe … */
#define OBJECT_NAMES "probe-abi*.so" /* … and names in it */

/* Whether the process finds the same file under its name. */
static bool is_visible(pid_t pid, const char *path)
{
	char there[PATH_MAX];
	struct stat a, b;

	if (snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path) >= (int)sizeof(there))
		return false;
	return !stat(path, &a) && !stat(there, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Opens a folder of the process; symbolic links lead within its root. */
static int open_there(int root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};

	return (int)syscall(SYS_openat2, root, path + 1, &how, sizeof(how));
}

/* Whether programs can be mapped from files in it that no other user can replace. */
static bool is_suitable(int fd)
{
	struct statvfs fs;
	struct stat st;

	return !fstatvfs(fd, &fs) && !(fs.f_flag & (ST_NOEXEC | ST_RDONLY)) && !fstat(fd, &st) &&
	       (!(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX));
}

static int copy_file(int from_dir, const char *name, int to_dir)
{
	int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC), to, ret = 0;
	ssize_t n = 1;

	if (from < 0)
		return -errno;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
	ret = to < 0 ? -errno : 0;
	while (!ret && n > 0) {
		n = sendfile(to, from, NULL, 1 << 20);
		ret = n < 0 ? -errno : 0;
	}
	/* Against the umask: the process may belong to another user. */
	if (!ret && fchmod(to, 0755))
		ret = -errno;
	if (to >= 0)
		close(to);
	close(from);
	return ret;
}

static int make_folder(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0755))
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0755))
		return -errno;
	return fd;
}

/* Calls each() for the objects in a folder until it fails. */
static int each_object(int dir, int (*each)(int dir, const char *name, int arg), int arg)
{
	int fd = dup(dir), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d)
		return -errno;
	rewinddir(d);
	while (!ret && (e = readdir(d)))
		if (!fnmatch(OBJECT_NAMES, e->d_name, 0))
			ret = each(dir, e->d_name, arg);
	closedir(d);
	return ret;
}

static int copy_all(int from, int to)
{
	int objects = openat(from, OBJECTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), there;
	int ret = objects < 0 ? -errno : copy_file(from, RT_PROBE_NAME, to);

	if (!ret) {
		there = make_folder(to, OBJECTS);
		ret = there < 0 ? there : each_object(objects, copy_file, there);
		if (there >= 0)
			close(there);
	}
	if (objects >= 0)
		close(objects);
	return ret;
}

static int remove_one(int dir, const char *name, int arg)
{
	unlinkat(dir, name, 0);
	return 0;
}

void rt_provided_remove(struct rt_provided *f)
{
	int objects;

	if (f->at < 0)
		return;
	objects = openat(f->folder, OBJECTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (objects >= 0) {
		each_object(objects, remove_one, 0);
		close(objects);
	}
	unlinkat(f->folder, OBJECTS, AT_REMOVEDIR);
	unlinkat(f->folder, RT_PROBE_NAME, 0);
	unlinkat(f->at, f->name, AT_REMOVEDIR);
	if (f->folder >= 0)
		close(f->folder);
	close(f->at);
	f->at = f->folder = -1;
}

static int place_in(struct rt_provided *f, int root, const char *path, int from)
{
	struct timespec now;
	int ret;

	f->at = open_there(root, path);
	if (f->at < 0)
		return -errno;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(f->name, sizeof(f->name), "ringtap-%d-%lx%09ld", (int)getpid(), (long)now.tv_sec,
		now.tv_nsec);
	ret = is_suitable(f->at) ? make_folder(f->at, f->name) : -EACCES;
	if (ret < 0) {
		close(f->at);
		f->at = -1;
		return ret;
	}
	f->folder = ret;
	ret = copy_all(from, f->folder);
	if (ret)
		rt_provided_remove(f);
	else
		snprintf(f->path, sizeof(f->path), "%s/%s/%s", path, f->name, RT_PROBE_NAME);
	return ret;
}

static int place(struct rt_provided *f, pid_t pid, const char *probe)
{
	static const char *const folders[] = {"/run", "/var/tmp", "/tmp", "/dev/shm"};
	char path[PATH_MAX];
	int root, from, ret = -ENOENT;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(probe, '/') - probe), probe);
	from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || from < 0)
		ret = -errno;
	for (size_t i = 0; root >= 0 && from >= 0 && ret && i < sizeof(folders) / sizeof(*folders);
		i++)
		ret = place_in(f, root, folders[i], from);
	if (root >= 0)
		close(root);
	if (from >= 0)
		close(from);
	return ret;
}

int rt_provide(struct rt_provided *f, const struct rt_process *p, const char *probe, char *err,
	size_t errlen)
{
	char own[PATH_MAX];
	int ret;

	*f = (struct rt_provided){.at = -1, .folder = -1};
	if (!realpath(probe, own)) {
		ret = -errno;
		snprintf(err, errlen, "%s: %s", probe, strerror(-ret));
		return ret;
	}
	if (is_visible(p->pid, own)) {
		snprintf(f->path, sizeof(f->path), "%s", own);
		return 0;
	}
	ret = place(f, p->pid, own);
	if (ret)
		snprintf(err, errlen,
			"it has a file system of its own, and none of its folders /run, /var/tmp, "
			"/tmp and /dev/shm can hold the probe: %s; mount one that is writable and "
			"not noexec",
			strerror(-ret));
	return ret;
}
