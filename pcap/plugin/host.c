/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "host.h"
#include "pcap/real.h"

struct host host;
static const void *_Atomic caller;
static void *library;
static bool complete = true;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void *real_library(void)
{
	return library;
}

/* By its file: a program may have loaded libpcap by dlopen(), where RTLD_DEFAULT finds nothing. A
 * libpcap within the program has the program's name. */
static void find(void)
{
	Dl_info info;
	void *f;

	if (dladdr(caller, &info) && info.dli_fname)
		library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	if (!library)
		library = dlopen(NULL, RTLD_NOW);
#define FIND(type, name, args)                                     \
	f = library ? dlsym(library, "pcap_plugin_" #name) : NULL; \
	complete &= f != NULL;                                     \
	host.name = (type(*) args)(uintptr_t)f;
	HOST_FUNCTIONS(FIND)
#undef FIND
}

bool host_find(const void *address)
{
	const void *none = NULL;

	atomic_compare_exchange_strong(&caller, &none, address);
	pthread_once(&once, find);
	return complete;
}
