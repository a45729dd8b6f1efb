/* SPDX-License-Identifier: BSD-3-Clause */
/* The USDT event app:mark, in a program and, with other names, in a library: RT_EVENT is the
 * function that passes it. */
#include <errno.h>

#include "rt_event.h"

#ifdef RINGTAP_USDT
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

/* Hidden in this file, or the library would use the program's. */
__attribute__((section(".probes"), visibility("hidden"))) unsigned short app_mark_semaphore = 0;

int RT_EVENT(void)
{
	if (!__atomic_load_n(&app_mark_semaphore, __ATOMIC_RELAXED))
		return 0;
	STAP_PROBE(app, mark);
	return 1;
}
#else
int RT_EVENT(void)
{
	return -ENOTSUP;
}
#endif
