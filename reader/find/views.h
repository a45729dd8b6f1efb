/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applications that have another file system than this process: in other mount namespaces, such as
 * containers, or below another root. Their runtime folders are found by the sockets of their
 * network namespace, and reached by /proc/PID/root.
 */
#ifndef RINGTAP_READER_FIND_VIEWS_H
#define RINGTAP_READER_FIND_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Set to "no": applications of other mount namespaces and roots are not searched for. */
#define RT_VIEWS_VARIABLE "RINGTAP_CONTAINERS"

/* The file system of a process. */
struct rt_view {
	pid_t pid; /* a process with it */
	ino_t mounts, net;
	dev_t root_dev;
	ino_t root;
	bool own; /* this process's */
};

/* 0; -EACCES: the process belongs to another user; -ENOENT: it has ended. */
int rt_view_get(struct rt_view *v, pid_t pid);
bool rt_view_is_same(const struct rt_view *a, const struct rt_view *b);

/* The process of the view that has this id in its own PID namespace; 0: unknown. */
pid_t rt_view_pid(const struct rt_view *v, pid_t own_pid);

/* Calls take() for folders PARENT/dpdk/PREFIX in which a process of the view's network namespace
 * has a socket of DPDK or of the probe, once for each view, until it fails. folder: its path in the
 * view; it may be that of another view's. Returns what take() returned, or -ENOMEM. Abstract names
 * of probes, "@…", are passed as they are. */
typedef int (*rt_view_take)(void *arg, const struct rt_view *v, const char *folder);
/* foreign: all sockets in all views; false: only those of root and this user, as far as the kernel
 * tells, in views of their processes. */
int rt_views_each(bool foreign, rt_view_take take, void *arg);

/* The address of a folder in the view of a process, "/proc/PID/root/FOLDER". */
#define RT_VIEW_ROOT "/proc/%d/root"

/* Whether an address is such; *pid and *folder, which begins with a slash, are its parts. */
bool rt_view_address(const char *address, pid_t *pid, const char **folder);

/* The folder that an address means, opened with O_PATH; its path has no links. -EINVAL: it is no
 * such address; -errno. */
int rt_view_open(const char *address);

#endif
