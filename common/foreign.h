/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that another user may have put instead of ours. */
#ifndef RINGTAP_COMMON_FOREIGN_H
#define RINGTAP_COMMON_FOREIGN_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens what at, a descriptor with O_PATH, refers to, and closes at. Regular files only, as opening
 * a pipe or device may wait or start something; never waits for the end of a lease. A descriptor to
 * read from, and its st; -EPERM: no regular file; -errno. at < 0: returns it. */
int rt_foreign_reopen(int at, struct stat *st);
/* The same of a name in a folder, or AT_FDCWD; flags: 0 or O_NOFOLLOW. */
int rt_foreign_open(int folder, const char *name, int flags, struct stat *st);
/* Reads a whole file. Its length, and a zero behind it; -EFBIG: max bytes or more; -errno. The
 * caller frees *data, which is NULL after an error. */
ssize_t rt_foreign_read(int folder, const char *name, int flags, size_t max, char **data);

#endif
