/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a session: the reader allocates it, sets its NUMA nodes, and is charged for it. */
#ifndef RINGTAP_READER_MEMORY_MEMORY_H
#define RINGTAP_READER_MEMORY_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/proto.h"

/* The chunks that are not in RT_FD_DATA: memories that are populated while packets flow. */
struct rt_rest {
	struct rt_msg_layout layout;
	uint32_t quit; /* rt_rest_fill() must come back; atomic */
	uint32_t count;
	struct rt_piece {
		int fd;             /* -1: none */
		uint64_t at, bytes; /* in the buffer */
	} pieces[];
};

struct rt_memory {
	int fd[RT_FD_COUNT];       /* -1: none */
	struct rt_seg_tail *tails; /* mapped before the probe seals it against writable mappings */
	size_t tails_size;
	struct rt_rest *rest; /* NULL: RT_FD_DATA has all chunks */
};

/* No memory; valid for rt_memory_free(). */
#define RT_MEMORY_NONE ((struct rt_memory){.fd = {-1, -1, -1}})

/* Bytes that a buffer of the default size may have. */
uint64_t rt_memory_most(void);

/* Makes what a probe requests: all pages are there, each ring's near to its thread, huge ones if
 * possible, and none of the memories can change its size. fates: what follows the layout, NULL:
 * nothing. most: bytes that the buffer may have; the probe may round up to a chunk, and to what
 * each ring needs. -EBADMSG: an impossible request; -ENOMEM: more than half of what this process
 * can have; -errno. A sentence is in err. Undo with rt_memory_free(). */
int rt_memory_make(struct rt_memory *m, const struct rt_msg_layout *l,
	const struct rt_msg_fates *fates, uint64_t most, char *err, size_t errlen);
/* Closes the descriptors; tails stay mapped, and the rest stays. */
void rt_memory_close(struct rt_memory *m);
void rt_memory_free(struct rt_memory *m);

/* Populates a piece of the rest, as rt_memory_make() does, before it is passed to the probe.
 * -ENOMEM: the process can have less by now; -ECANCELED: quit; -errno, and a sentence in err
 * (RT_TEXT_LEN bytes). May be called in another thread. */
int rt_rest_fill(const struct rt_rest *r, uint32_t piece, char *err);
void rt_rest_free(struct rt_rest *r);

#endif
