/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binds the probe's object to DPDK wherever it is. A program may have loaded DPDK, or a plugin that
 * contains it, with local scope. To make that global would change the program: another DPDK that is
 * loaded later would bind to the first one, and abort. Needs no DPDK.
 */
#ifndef RINGTAP_PROBE_CONTROL_SCOPE_H
#define RINGTAP_PROBE_CONTROL_SCOPE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct rt_scope {
	/* Files of loaded objects outside of the global scope. */
	char files[3][PATH_MAX];
	unsigned count;
};

/* The address of the symbol that the object uses: the global one, else that of the only object that
 * defines it, which is added to the scope. NULL: there is none, or *several: a scope without files
 * then has two of them, and no more count. */
void *rt_scope_find(struct rt_scope *s, const char *symbol, bool *several);
/* Adds an object that dlopen() has returned. */
void rt_scope_add(struct rt_scope *s, void *object);

/* dlopen() of a file whose symbols are bound to those of the global scope, then of the scope's
 * objects, then of the file itself. NULL: dlerror(), or err if it is not empty. */
void *rt_scope_open(const struct rt_scope *s, const char *path, char *err, size_t errlen);

#endif
