/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is reserved as a whole and populated piece by piece, never by a polling thread. */
#ifndef RINGTAP_PROBE_MEMORY_SPARSE_H
#define RINGTAP_PROBE_MEMORY_SPARSE_H

#include <stdint.h>

/* Maps size bytes of a memfd, or private zeros if fd is -1, and populates none of them, also
 * where the application has called mlockall(MCL_FUTURE). NULL: no memory. Undo with munmap(). */
void *rt_sparse_map(int fd, uint64_t size);

/* Populates the pages that hold size bytes at p, and locks them into memory if RLIMIT_MEMLOCK
 * allows it. Preserves their contents, also while other threads write to them. 0 or -errno. */
int rt_sparse_populate(void *p, uint64_t size);

#endif
