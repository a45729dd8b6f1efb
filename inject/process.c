/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/array.h"
#include "common/foreign.h"
#include "common/in_root.h"
#include "process.h"

#define NAMESAKES_MAX 1000 /* mappings; each may be compared with 65,530 others */

int rt_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;
	ssize_t n;

	text[0] = 0;
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	ret = n < 0 ? -errno : (int)n;
	close(fd);
	if (ret >= 0)
		text[ret] = 0;
	return ret;
}

static int add(struct rt_process *p, const char *line)
{
	unsigned long long start, end, offset, ino;
	unsigned major, minor;
	struct rt_map *m;
	int at = 0;
	char perms[5];

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perms, &offset, &major,
		    &minor, &ino, &at) < 7 ||
		!at)
		return 0;
	/* Thousands of memory segments are of no use. */
	if (!ino && line[at] != '[' && !(perms[1] == 'w'))
		return 0;
	m = rt_array_add(p->maps, p->map_count);
	if (!m)
		return -ENOMEM;
	*m = (struct rt_map){.start = start,
		.end = end,
		.offset = offset,
		.dev = makedev(major, minor),
		.ino = ino,
		.path = strndup(line + at, strcspn(line + at, "\n"))};
	memcpy(m->perms, perms, sizeof(m->perms));
	return m->path ? 0 : -ENOMEM;
}

static void forget(struct rt_process *p)
{
	for (size_t i = 0; i < p->map_count; i++)
		free(p->maps[i].path);
	free(p->maps);
	p->maps = NULL;
	p->map_count = 0;
}

int rt_process_refresh(struct rt_process *p)
{
	char path[64], *line = NULL;
	size_t size = 0;
	int ret = 0;
	FILE *f;

	forget(p);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	while (!ret && getline(&line, &size, f) > 0)
		ret = add(p, line);
	/* Without the permission, reading fails. */
	if (!ret && !p->map_count)
		ret = errno ? -errno : -ESRCH;
	free(line);
	fclose(f);
	if (ret)
		forget(p);
	return ret;
}

int rt_process_open(struct rt_process *p, pid_t pid)
{
	*p = (struct rt_process){.pid = pid};
	return rt_process_refresh(p);
}

void rt_process_close(struct rt_process *p)
{
	forget(p);
}

/* Whether the mapping begins a loaded file: one of its code follows, before the file is mapped from
 * its beginning again. */
static bool is_loaded(const struct rt_process *p, size_t i)
{
	const struct rt_map *first = &p->maps[i];

	if (first->offset)
		return false;
	for (; i < p->map_count; i++) {
		const struct rt_map *m = &p->maps[i];

		if (m->ino != first->ino || m->dev != first->dev)
			continue;
		if (m != first && !m->offset)
			return false;
		if (m->perms[2] == 'x')
			return true;
	}
	return false;
}

const struct rt_map *rt_process_find(const struct rt_process *p, const char *name)
{
	const struct rt_map *data = NULL;
	unsigned namesakes = 0;

	for (size_t i = 0; i < p->map_count && namesakes < NAMESAKES_MAX; i++) {
		const char *slash = strrchr(p->maps[i].path, '/');

		if (!slash || strncmp(slash + 1, name, strlen(name)))
			continue;
		namesakes++;
		if (is_loaded(p, i))
			return &p->maps[i];
		data = data ? data : &p->maps[i];
	}
	return data;
}

const struct rt_map *rt_process_at(const struct rt_process *p, uint64_t address)
{
	for (size_t i = 0; i < p->map_count; i++)
		if (p->maps[i].start <= address && address < p->maps[i].end)
			return &p->maps[i];
	return NULL;
}

const struct rt_map *rt_process_program(const struct rt_process *p)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)p->pid);
	if (stat(path, &st))
		return NULL;
	for (size_t i = 0; i < p->map_count; i++)
		if (p->maps[i].ino == st.st_ino && is_loaded(p, i))
			return &p->maps[i];
	return NULL;
}

/* A file system may show another device number in maps than in stat(): compare inodes only. The
 * path is the process's choice. */
static int reopen(int at, uint64_t ino)
{
	struct stat st;
	int fd = rt_foreign_reopen(at, &st);

	if (fd < 0 || st.st_ino == ino)
		return fd;
	close(fd);
	return -ENOENT;
}

int rt_process_root(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int rt_process_file(const struct rt_process *p, const struct rt_map *map)
{
	char path[PATH_MAX];
	int fd, root;

	/* Needs CAP_CHECKPOINT_RESTORE, and finds removed files as well. */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)p->pid,
		(unsigned long long)map->start, (unsigned long long)map->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	fd = reopen(fd < 0 ? -errno : fd, map->ino);
	if (fd >= 0)
		return fd;
	root = rt_process_root(p->pid);
	if (root < 0)
		return root;
	fd = reopen(rt_open_in_root(root, map->path, O_PATH), map->ino);
	close(root);
	return fd;
}

static int copy(pid_t pid, uint64_t remote, void *local, size_t size, bool write)
{
	struct iovec here = {local, size}, there = {(void *)(uintptr_t)remote, size};
	ssize_t n = write ? process_vm_writev(pid, &here, 1, &there, 1, 0)
			  : process_vm_readv(pid, &here, 1, &there, 1, 0);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -EIO;
}

int rt_process_read(pid_t pid, uint64_t from, void *to, size_t size)
{
	return copy(pid, from, to, size, false);
}

int rt_process_write(pid_t pid, uint64_t to, const void *from, size_t size)
{
	return copy(pid, to, (void *)(uintptr_t)from, size, true);
}
