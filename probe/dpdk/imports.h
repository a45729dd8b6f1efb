/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses by which loaded objects call functions of other objects: the slots that the dynamic
 * loader fills (System V ABI, DT_JMPREL and DT_RELA). */
#ifndef RINGTAP_PROBE_DPDK_IMPORTS_H
#define RINGTAP_PROBE_DPDK_IMPORTS_H

#include <stdint.h>

/* Stores the address in the slots of this function in all loaded objects, but in that with the
 * address. Memory that the loader has made read-only is read-only again afterwards. Returns the
 * number of slots, or -errno: not all could be replaced. Not while objects are loaded. */
int rt_imports_replace(const char *name, uintptr_t address);

/* A function, by the symbol that objects import, and what is called instead of it. theirs is never
 * read from a slot: that may hold the resolver of a lazy library, which would overwrite it. */
struct rt_import {
	const char *name;
	uintptr_t theirs, ours;
};

/* Stores ours in the slots of all loaded objects but ethdev's drivers, whose packets ethdev shows;
 * and theirs again, where ours is. Objects may come and go at any time, and other threads may call
 * by the slots meanwhile: they use one of the two functions, and may still be in ours after it has
 * been restored. Return the number of slots that were changed, or -errno: not all could be. */
int rt_imports_divert(const struct rt_import *i);
int rt_imports_restore(const struct rt_import *i);

/* Changes whenever objects have been loaded. */
uint64_t rt_imports_loads(void);

#endif
