/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For LD_PRELOAD: VPP starts more workers than the machine has CPUs. It reads the list of CPUs from
 * a file, and ends if it cannot pin a worker; a worker without a CPU of its own runs on any.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* it would rename fopen() */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	int (*real)(pthread_t, size_t, const cpu_set_t *);

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_setaffinity_np");
	(void)real(thread, size, set);
	return 0;
}

FILE *fopen(const char *name, const char *mode)
{
	static char online[] = "0-7\n";
	FILE *(*real)(const char *, const char *);

	*(void **)&real = dlsym(RTLD_NEXT, "fopen");
	return strcmp(name, "/sys/devices/system/cpu/online") ? real(name, mode)
							      : fmemopen(online, 4, "r");
}
