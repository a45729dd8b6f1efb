/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings of ordinary, transparent huge and huge pages. */
#ifndef RINGTAP_FWD_MEMORY_MAP_H
#define RINGTAP_FWD_MEMORY_MAP_H

#include "memory.h"

/* Maps and populates m->bytes (rounded up to pages of m->page_size) as m->kind says; sets base,
 * bytes and mapping. 0 or -errno after saying why. */
int memory_map(struct memory *m);
void memory_unmap(struct memory *m);
/* Compares what smaps says with what was asked for. 0 or -EINVAL after saying why. */
int memory_verify(struct memory *m);

#endif
