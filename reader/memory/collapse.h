/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages for memory that has small ones. */
#ifndef RINGTAP_READER_MEMORY_COLLAPSE_H
#define RINGTAP_READER_MEMORY_COLLAPSE_H

#include <stddef.h>

/* Makes a populated shared mapping of a memfd use huge pages where MADV_HUGEPAGE alone does not:
 * where shmem_enabled is "never" (Debian's default), a request for this very range still works. The
 * new pages are charged to the memory cgroup of the caller. Returns after a second, and one more
 * for each GiB, at the latest. Failure costs speed only. */
void rt_collapse(void *p, size_t size);

/* Calls f(arg) in a process of its own, a copy of this one with the calling thread alone and no
 * descriptors: f may use what async-signal-safe functions may, and shared memory. No SIGCHLD is
 * sent when it ends, and only waitpid() with __WALL sees it. 0: f has returned; -ETIMEDOUT: it has
 * not for so long, and is killed as soon as the kernel lets it; -EBUSY: an earlier one has not
 * ended yet; other -errno: it did not begin, or was killed. */
int rt_collapse_aside(void (*f)(void *arg), void *arg, int timeout_ms);

#endif
