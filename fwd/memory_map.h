/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings of ordinary pages, transparent huge pages and huge pages. */
#ifndef RINGTAP_FWD_MEMORY_MAP_H
#define RINGTAP_FWD_MEMORY_MAP_H

#include "memory.h"

/* Maps and populates m->bytes (rounded up to pages of m->page_size) as m->kind requires; sets
 * base, bytes and mapping. 0, or -errno after printing why. */
int memory_map(struct memory *m);
void memory_unmap(struct memory *m);
/* Compares smaps with the configuration. 0, or -errno after printing why. */
int memory_verify(struct memory *m);

#endif
