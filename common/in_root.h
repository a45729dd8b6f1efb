/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of another process, by paths that hold in its root folder. */
#ifndef RINGTAP_COMMON_IN_ROOT_H
#define RINGTAP_COMMON_IN_ROOT_H

#include <stddef.h>

/* A descriptor of the file that a process with this root folder would open, or -errno; flags of
 * open(2), O_CLOEXEC is added. Symbolic links lead within the root, also absolute ones and "..". */
int rt_open_in_root(int root, const char *path, int flags);

/* The same without openat2(2): kernels before 5.6 lack it, and systemd's RestrictSUIDSGID= denies
 * it with ENOSYS. Internal, for the tests. */
int rt_open_by_steps(int root, const char *path, int flags);

/* A path as /a/b, without links, "." and "..", which are refused: -EINVAL, or what open(2) with
 * O_NOFOLLOW returns. "" is the root. */
int rt_open_plain(int root, const char *path, int flags);

/* The plain path, as above, of a file that exists: without its links. 0 or -errno. */
int rt_plain_in_root(int root, const char *path, char *plain, size_t size);

#endif
