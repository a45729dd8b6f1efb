/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "real.h"

static struct real table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Replace functions that the system's libpcap lacks, or all of them where there is none: an error,
 * not a crash. */
static long no_number(void)
{
	return PCAP_ERROR;
}

static void *no_pointer(void)
{
	return NULL;
}

#ifdef RINGTAP_PCAP_PLUGIN

/* The libpcap that has loaded the plug-in. */
static void *find(const char *name)
{
	return real_library() ? dlsym(real_library(), name) : NULL;
}

#else

/* Not by its plain name: under `ringtap run` this is the name of our shim. */
static void *open_system(void)
{
	static const char *const names[] = {RINGTAP_SYSTEM_PCAP, "libpcap.so.1", "libpcap.so"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		void *f = lib ? dlsym(lib, "pcap_create") : NULL;

		if (f && f != (void *)(uintptr_t)pcap_create)
			return lib;
	}
	return NULL;
}

/* The next definition in the order of loading. There is none if the program has loaded libpcap by
 * dlopen(). */
static void *find(const char *name)
{
	static void *lib;
	void *f = dlsym(RTLD_NEXT, name);

	if (f)
		return f;
	if (!lib)
		lib = open_system();
	return lib ? dlsym(lib, name) : NULL;
}

#endif

static void load(void)
{
	void *f;

#define NUMBER(name)                                          \
	f = find(#name);                                      \
	table.name = f ? (__typeof__(table.name))(uintptr_t)f \
		       : (__typeof__(table.name))(uintptr_t)no_number;
#define POINTER(name)                                         \
	f = find(#name);                                      \
	table.name = f ? (__typeof__(table.name))(uintptr_t)f \
		       : (__typeof__(table.name))(uintptr_t)no_pointer;
	REAL_NUMBERS(NUMBER)
	REAL_POINTERS(POINTER)
	REAL_OTHERS(POINTER)
#undef NUMBER
#undef POINTER
}

const struct real *real(void)
{
	pthread_once(&once, load);
	return &table;
}
