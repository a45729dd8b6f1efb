/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between libringtap-probe.so (probe/control/loader.c) and the code that gets it into a running
 * process (inject/). Both symbols are exported; applications do not use them.
 */
#ifndef RINGTAP_COMMON_LOADED_H
#define RINGTAP_COMMON_LOADED_H

#include <assert.h>
#include <stdint.h>

/* int ringtap_probe_load(const char *probe, int start): loads the object for the process's DPDK if
 * that has failed before, from the folder of probe, a path of libringtap-probe.so in which copies
 * may be (inject/provide.h); NULL: from the folder of the library itself. start: then also calls
 * ringtap_probe_start(). Returns rt_loaded.status. */
#define RT_LOAD_SYMBOL "ringtap_probe_load"
/* A struct rt_loaded. */
#define RT_LOADED_SYMBOL  "ringtap_probe_loaded"
#define RT_LOADED_VERSION 3

struct rt_loaded {
	uint32_t version; /* RT_LOADED_VERSION */
	/* 0: the object is loaded; 1: not tried yet, or a thread is loading it; -errno: it could
	 * not be loaded, text has the reason. */
	int32_t status;
	int32_t started; /* result of the last ringtap_probe_start() by ringtap_probe_load(); 1:
			    none */
	uint32_t starts; /* counts them; written last */
	uint64_t handle; /* the library's, for dlclose() if it was loaded in vain; 0: unknown */
	char text[488];  /* why status is below 0, or started is -ENOTSUP */
};
static_assert(sizeof(struct rt_loaded) == 512, "read by another process");

#endif
