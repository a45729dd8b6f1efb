/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process in another mount namespace does not see the files of the probe. It gets copies in a
 * folder of its own file system, reached by /proc/PID/root, which are removed when it has loaded
 * them. They are made and removed with the rights of its user: the path is the process's choice,
 * and root of another user namespace may be nobody there. Not a memfd: the probe finds its objects
 * beside itself, and a descriptor that is left behind by a killed tracer would be the
 * application's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/in_root.h"
#include "common/status.h"
#include "provide.h"

#define OBJECTS      "ringtap"       /* the folder beside the probe … */
#define OBJECT_NAMES "probe-abi*.so" /* … and names in it */

#define STALE_S 60 /* copies are in use for some seconds */

struct copying {
	const struct rt_provided *f;
	int to; /* folder */
};

static struct {
	gid_t list[NGROUPS_MAX];
	int count;
} own_groups;

/* A user of files that is not root has no capabilities to override permissions, and none of our
 * groups. Of this thread only, which setgroups(3) is not. */
static void as_user(const struct rt_provided *f)
{
	if (geteuid())
		return;
	syscall(SYS_setgroups, 0, NULL);
	setfsgid(f->gid);
	setfsuid(f->uid);
}

static void as_self(void)
{
	if (geteuid())
		return;
	setfsuid(0);
	setfsgid(getegid());
	syscall(SYS_setgroups, own_groups.count, own_groups.list);
}

/* Without CAP_SETUID or CAP_SETGID, or where its user has no name, they would be made as root. */
static bool may_be_user(const struct rt_provided *f)
{
	bool can;

	if (geteuid())
		return true;
	as_user(f);
	/* Both return what was before, and -1 changes nothing. */
	can = setfsuid((uid_t)-1) == (int)f->uid && setfsgid((gid_t)-1) == (int)f->gid &&
	      !getgroups(0, NULL);
	as_self();
	return can;
}

static void find_user(struct rt_provided *f, pid_t pid)
{
	char path[64], value[128];
	unsigned real, effective, inside, outside;

	f->uid = geteuid();
	f->gid = getegid();
	rt_process_status(pid, "Uid", value, sizeof(value));
	if (sscanf(value, "%u %u", &real, &effective) == 2)
		f->uid = effective;
	rt_process_status(pid, "Gid", value, sizeof(value));
	if (sscanf(value, "%u %u", &real, &effective) == 2)
		f->gid = effective;
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	if (rt_read_text(path, value, sizeof(value)) > 0 &&
		sscanf(value, "%u %u", &inside, &outside) == 2 && !inside)
		f->root = outside;
}

static int try_open(int dir, const char *name, void *arg)
{
	const struct copying *c = arg;
	int fd;

	as_user(c->f);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	as_self();
	if (fd < 0)
		return -EACCES;
	close(fd);
	return 0;
}

/* Calls each() for the objects in a folder until it fails. */
static int each_object(int dir, int (*each)(int dir, const char *name, void *arg), void *arg)
{
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 0), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	rewinddir(d);
	while (!ret && (e = readdir(d)))
		if (!fnmatch(OBJECT_NAMES, e->d_name, 0))
			ret = each(dir, e->d_name, arg);
	closedir(d);
	return ret;
}

/* Whether its user may read the probe and its objects. */
static bool is_readable(const struct rt_provided *f, const char *path)
{
	struct copying c = {.f = f};
	char folder[PATH_MAX];
	int fd, ret;

	snprintf(
		folder, sizeof(folder), "%.*s" OBJECTS, (int)(strrchr(path, '/') + 1 - path), path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ret = try_open(AT_FDCWD, path, &c);
	ret = ret ? ret : try_open(AT_FDCWD, folder, &c);
	ret = ret ? ret : each_object(fd, try_open, &c);
	close(fd);
	return !ret;
}

/* Whether the process finds the same file under its name. */
static bool is_visible(const struct rt_provided *f, pid_t pid, const char *path)
{
	char there[PATH_MAX];
	struct stat a, b;

	if (snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path) >= (int)sizeof(there))
		return false;
	return !stat(path, &a) && !stat(there, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino && is_readable(f, path);
}

/* Opens a folder of the process; symbolic links lead within its root. */
static int open_there(const struct rt_provided *f, int root, const char *path)
{
	int fd;

	as_user(f);
	fd = rt_open_in_root(root, path, O_RDONLY | O_DIRECTORY);
	as_self();
	return fd;
}

/* Whether programs can be mapped from files in it that no other user can replace. */
static bool is_suitable(const struct rt_provided *f, int fd)
{
	struct statvfs fs;
	struct stat st;

	return !fstatvfs(fd, &fs) && !(fs.f_flag & (ST_NOEXEC | ST_RDONLY)) && !fstat(fd, &st) &&
	       (!st.st_uid || st.st_uid == f->uid || st.st_uid == f->root) &&
	       (!(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX));
}

static int copy_file(int from_dir, const char *name, void *arg)
{
	const struct copying *c = arg;
	int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC), to, ret = 0;
	ssize_t n = 1;

	if (from < 0)
		return -errno;
	as_user(c->f);
	to = openat(c->to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
	ret = to < 0 ? -errno : 0;
	/* Against the umask: the process may belong to another user. */
	if (!ret && fchmod(to, 0755))
		ret = -errno;
	as_self();
	while (!ret && n > 0) {
		n = sendfile(to, from, NULL, 1 << 20);
		ret = n < 0 ? -errno : 0;
	}
	if (to >= 0)
		close(to);
	close(from);
	return ret;
}

static int make_folder(const struct rt_provided *f, int at, const char *name)
{
	int fd = -1, ret = 0;

	as_user(f);
	if (mkdirat(at, name, 0755)) {
		ret = -errno;
	} else {
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fchmod(fd, 0755)) {
			ret = -errno;
			unlinkat(at, name, AT_REMOVEDIR);
		}
	}
	as_self();
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	return ret;
}

static int copy_all(const struct rt_provided *f, int from, int to)
{
	int objects = openat(from, OBJECTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct copying c = {.f = f, .to = to};
	int ret = objects < 0 ? -errno : copy_file(from, RT_PROBE_NAME, &c);

	if (!ret) {
		c.to = make_folder(f, to, OBJECTS);
		ret = c.to < 0 ? c.to : each_object(objects, copy_file, &c);
		if (c.to >= 0)
			close(c.to);
	}
	if (objects >= 0)
		close(objects);
	return ret;
}

static int remove_one(int dir, const char *name, void *arg)
{
	unlinkat(dir, name, 0);
	return 0;
}

static void remove_folder(const struct rt_provided *f, int at, const char *name)
{
	int folder, objects;

	as_user(f);
	folder = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	objects = folder < 0 ? -1
			     : openat(folder, OBJECTS,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (objects >= 0) {
		each_object(objects, remove_one, NULL);
		close(objects);
	}
	if (folder >= 0) {
		unlinkat(folder, OBJECTS, AT_REMOVEDIR);
		unlinkat(folder, RT_PROBE_NAME, 0);
		close(folder);
		unlinkat(at, name, AT_REMOVEDIR);
	}
	as_self();
}

static bool is_stale(const struct rt_provided *f, int at, const char *name)
{
	struct stat st;
	int pid, end = 0;

	return sscanf(name, "ringtap-%d-%n", &pid, &end) == 1 && end && pid > 0 && kill(pid, 0) &&
	       errno == ESRCH && !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode) && st.st_uid == f->uid &&
	       time(NULL) - st.st_mtim.tv_sec > STALE_S;
}

/* Copies that a killed attach has left. */
static void remove_stale(const struct rt_provided *f)
{
	int fd = fcntl(f->at, F_DUPFD_CLOEXEC, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)))
		if (is_stale(f, f->at, e->d_name))
			remove_folder(f, f->at, e->d_name);
	closedir(d);
}

static void block(struct rt_provided *f)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	f->blocked = !pthread_sigmask(SIG_BLOCK, &set, &f->old);
}

static void remove_copies(struct rt_provided *f)
{
	if (f->at < 0)
		return;
	remove_folder(f, f->at, f->name);
	if (f->folder >= 0)
		close(f->folder);
	close(f->at);
	f->at = f->folder = -1;
}

void rt_provided_remove(struct rt_provided *f)
{
	remove_copies(f);
	if (f->blocked)
		pthread_sigmask(SIG_SETMASK, &f->old, NULL);
	f->blocked = false;
}

static int place_in(struct rt_provided *f, int root, const char *path, int from)
{
	struct timespec now;
	int ret;

	f->at = open_there(f, root, path);
	if (f->at < 0)
		return f->at;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(f->name, sizeof(f->name), "ringtap-%d-%lx%09ld", (int)getpid(), (long)now.tv_sec,
		now.tv_nsec);
	ret = is_suitable(f, f->at) ? 0 : -EACCES;
	if (!ret) {
		remove_stale(f);
		ret = make_folder(f, f->at, f->name);
	}
	if (ret < 0) {
		close(f->at);
		f->at = -1;
		return ret;
	}
	f->folder = ret;
	ret = copy_all(f, from, f->folder);
	if (ret)
		remove_copies(f);
	else
		snprintf(f->path, sizeof(f->path), "%s/%s/%s", path, f->name, RT_PROBE_NAME);
	return ret;
}

static int place(struct rt_provided *f, pid_t pid, const char *probe)
{
	static const char *const folders[] = {"/run", "/var/tmp", "/tmp", "/dev/shm"};
	char path[PATH_MAX];
	int root, from, ret = -ENOENT;

	root = rt_process_root(pid);
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(probe, '/') - probe), probe);
	from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || from < 0)
		ret = root < 0 ? root : -errno;
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
		return rt_fail(ret, err, errlen, "%s: %s", probe, strerror(-ret));
	}
	find_user(f, p->pid);
	own_groups.count = getgroups(NGROUPS_MAX, own_groups.list);
	if (is_visible(f, p->pid, own)) {
		snprintf(f->path, sizeof(f->path), "%s", own);
		return 0;
	}
	if (!may_be_user(f))
		return rt_fail(-EPERM, err, errlen,
			"it has a file system of its own, where the probe is put with the rights "
			"of its user (uid %u, gid %u), and ringtap may not take these; run it with "
			"CAP_SETUID and CAP_SETGID",
			f->uid, f->gid);
	block(f);
	ret = place(f, p->pid, own);
	if (ret)
		rt_provided_remove(f);
	if (ret)
		snprintf(err, errlen,
			"it has a file system of its own, and none of its folders /run, /var/tmp, "
			"/tmp and /dev/shm can hold the probe: %s; mount one that is writable and "
			"not noexec",
			strerror(-ret));
	return ret;
}
