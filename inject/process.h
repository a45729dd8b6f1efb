/* SPDX-License-Identifier: BSD-3-Clause */
/* State of a process from /proc and its ELF files. Nothing here changes the process. */
#ifndef RINGTAP_INJECT_PROCESS_H
#define RINGTAP_INJECT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RT_PROBE_NAME "libringtap-probe.so"

/* A mapping of a file, or a stack. */
struct rt_map {
	uint64_t start, end, offset;
	char perms[5];
	uint64_t dev, ino;
	char *path; /* "" if it has none */
};

struct rt_process {
	pid_t pid;
	struct rt_map *maps;
	size_t map_count;
};

/* Reads the mappings. 0; -ESRCH: no such process; -EACCES, -EPERM: not allowed; -errno. */
int rt_process_open(struct rt_process *p, pid_t pid);
/* Reads them again. On error none are left. */
int rt_process_refresh(struct rt_process *p);
void rt_process_close(struct rt_process *p);

/* The first mapping of a file whose name begins so, of one that is mapped as data only if none is
 * loaded; NULL: none. */
const struct rt_map *rt_process_find(const struct rt_process *p, const char *name);
/* The mapping that holds an address; NULL: none. */
const struct rt_map *rt_process_at(const struct rt_process *p, uint64_t address);
/* The first mapping of the program itself; NULL: unknown. */
const struct rt_map *rt_process_program(const struct rt_process *p);

/* Its root folder, with O_PATH. -errno. */
int rt_process_root(pid_t pid);

/* Opens the mapped file, also if it was removed or lies in another mount namespace. -errno. */
int rt_process_file(const struct rt_process *p, const struct rt_map *map);

/* Reads memory. 0 or -errno; -EIO: only a part is readable. */
int rt_process_read(pid_t pid, uint64_t from, void *to, size_t size);
int rt_process_write(pid_t pid, uint64_t to, const void *from, size_t size);

/* Text of a file, at most size - 1 bytes. Length or -errno. */
int rt_read_text(const char *path, char *text, size_t size);

#endif
