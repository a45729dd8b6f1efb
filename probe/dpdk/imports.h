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

#endif
