/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libringtap-probe.so: the file that EAL's -d loads and that applications link with. It needs no
 * DPDK itself: with a DT_NEEDED entry for DPDK's libraries, a statically linked application would
 * get a second DPDK beside its own, and panic. It loads the object that fits the application's
 * DPDK, from the folder ringtap/ beside itself. If that fails, the application runs without a
 * probe.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "probe/trace/attached.h"
#include "common/atomics.h"
#include "common/loaded.h"
#include "ringtap/probe.h"
#include "scope.h"

#define EXPORT __attribute__((visibility("default")))
#define EAL    "librte_eal.so"

static const struct rt_probe_api *api; /* NULL: not loaded, or of another version */

/* inject/ reads it in a running process. */
EXPORT extern struct rt_loaded ringtap_probe_loaded;
struct rt_loaded ringtap_probe_loaded = {.version = RT_LOADED_VERSION, .status = 1, .started = 1};
EXPORT int ringtap_probe_load(const char *probe, int start);

/* The only messages of ringtap's libraries: without the probe nothing else reports the failure. An
 * attach reads the text instead. Writing to an ended `app 2>&1 | tee` would leave SIGPIPE pending,
 * which ends the application when its thread has its signal mask again; writing to a full pipe
 * would block the thread with the dynamic loader's lock. */
#define SAY(...) (rt_is_attach() ? 0 : fprintf(stderr, "ringtap: " __VA_ARGS__))

#define FAIL(format, ...)                                                                      \
	do {                                                                                   \
		snprintf(ringtap_probe_loaded.text, sizeof(ringtap_probe_loaded.text), format, \
			__VA_ARGS__);                                                          \
		SAY("cannot load the probe: %s; the application runs without it\n",            \
			ringtap_probe_loaded.text);                                            \
		return -ELIBACC;                                                               \
	} while (0)

/* Libraries of DPDK that were loaded for the object. */
static struct {
	void *handles[2];
	unsigned count;
} added;

/* Loads a library of the application's shared DPDK that the application is not linked with. It
 * needs nothing new: all libraries that it depends on are loaded already. */
static void add_library(
	struct rt_scope *s, const char *symbol, const char *library, const void *in_eal)
{
	char path[PATH_MAX];
	const char *slash, *name;
	Dl_info info;
	bool several;
	void *object;

	if (rt_scope_find(s, symbol, &several) || !dladdr(in_eal, &info))
		return;
	slash = strrchr(info.dli_fname, '/');
	name = slash ? slash + 1 : info.dli_fname;
	if (strncmp(name, EAL, strlen(EAL)))
		return; /* a static program: no second DPDK may be loaded */
	if (snprintf(path, sizeof(path), "%.*s%s.so%s", (int)(name - info.dli_fname),
		    info.dli_fname, library, name + strlen(EAL)) >= (int)sizeof(path))
		return;
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (object) {
		added.handles[added.count++] = object;
		rt_scope_add(s, object);
	}
}

/* DPDK's ABI number is the year after that of its November release. 0: unknown. */
static unsigned abi_of(const char *version)
{
	unsigned year, month;

	if (sscanf(version + strcspn(version, "0123456789"), "%u.%u", &year, &month) != 2)
		return 0;
	return month >= 11 ? year + 1 : year;
}

/* The dynamic loader's entry of this library. NULL: unknown. */
static struct link_map *own_map(void)
{
	struct link_map *map = NULL;
	Dl_info info;

	return dladdr1(&api, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* The folder of this object; NULL: of the one that is loaded. False: unknown. */
static int folder_of(const char *probe, char out[PATH_MAX])
{
	const struct link_map *map = own_map();
	char *slash;

	if (!probe && map)
		probe = map->l_name;
	if (!probe || !realpath(probe, out))
		return 0;
	slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
	return slash != NULL;
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* LD_PRELOAD loads this library into each program, before a plugin that contains DPDK:
 * preloaded_init() loads the object then. */
static bool is_preloaded(void)
{
	const char *preload = getenv("LD_PRELOAD");
	const struct link_map *map = own_map();

	return preload && map && strstr(preload, base(map->l_name));
}

static int find_object(const char *probe)
{
	static struct rt_scope scope; /* not on the stack, which may be small */
	const char *(*version)(void);
	const struct rt_probe_api *found;
	char folder[PATH_MAX], path[PATH_MAX + 64], err[128];
	void *object;
	bool several;
	unsigned abi;

	scope.count = 0;
	version = (const char *(*)(void))(uintptr_t)rt_scope_find(&scope, "rte_version", &several);
	if (several)
		FAIL("%.200s and %.200s contain a DPDK each", base(scope.files[0]),
			base(scope.files[1]));
	if (!version && rt_scope_find(&scope, "rte_eal_cleanup", &several))
		FAIL("%.200s contains a DPDK older than 21.11; ringtap works with 21.11 and newer",
			scope.count ? base(scope.files[0]) : "the application");
	if (!version && is_preloaded()) {
		snprintf(ringtap_probe_loaded.text, sizeof(ringtap_probe_loaded.text),
			"the program has not loaded DPDK yet");
		return -EAGAIN;
	}
	if (!version)
		FAIL("%s",
			"no DPDK is visible: it is not loaded yet, and 'ringtap attach' loads the "
			"probe later, or the file that contains it hides its symbols: link a "
			"program with -Wl,--export-dynamic, and a plugin without "
			"-Wl,--exclude-libs");
	abi = abi_of(version());
	if (!abi)
		FAIL("DPDK's version (%s) is unknown", version());
	if (!folder_of(probe, folder))
		FAIL("the folder of libringtap-probe.so is unknown: %s", strerror(errno));
	add_library(&scope, "rte_eth_dev_count_avail", "librte_ethdev",
		(const void *)(uintptr_t)version);
	add_library(&scope, "rte_bpf_load", "librte_bpf", (const void *)(uintptr_t)version);
	snprintf(path, sizeof(path), "%s/ringtap/probe-abi%u.so", folder, abi);
	if (access(path, F_OK))
		FAIL("%.256s, the probe for %s (ABI %u), is missing: build it with 'make probes' or with "
		     "meson's option -Ddpdk=PATH/libdpdk.pc of DPDK %u.11",
			path, version(), abi, abi - 1);
	object = rt_scope_open(&scope, path, err, sizeof(err));
	if (!object)
		FAIL("%.256s, for %s: build ringtap again, and link statically linked applications "
		     "with -Wl,--export-dynamic",
			err[0] ? err : dlerror(), version());
	found = dlsym(object, RT_API_SYMBOL);
	if (found && found->version == RT_API_VERSION && found->size == sizeof(*found))
		rt_store(&api, found);
	else /* its constructors have run: only telemetry can reach it */
		SAY("the application cannot call the probe: %s and libringtap-probe.so have "
		    "different versions; install both from the same build\n",
			path);
	return 0;
}

static void load(const char *probe)
{
	const struct link_map *map = own_map();
	int status = find_object(probe);

	/* Nothing stays mapped of what cannot work, else everything, for threads that call it. */
	while (added.count)
		if (status)
			dlclose(added.handles[--added.count]);
		else
			added.count--;
	if (!status && map)
		(void)dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
	ringtap_probe_loaded.handle = (uintptr_t)map;
	/* Pairs with the acquire load in ringtap_probe_load(): text and handle come first. */
	rt_store_release(&ringtap_probe_loaded.status, status);
}

__attribute__((constructor)) static void load_own(void)
{
	load(NULL);
}

int ringtap_probe_load(const char *probe, int start)
{
	static int busy;
	int status = rt_load_acquire(&ringtap_probe_loaded.status); /* pairs with load() */

	/* No lock: the thread that holds it would wait for the dynamic loader's, with a thread in
	 * load() that holds that one. */
	if (status > 0 || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return -EBUSY;
	if (status < 0)
		load(probe);
	status = ringtap_probe_loaded.status;
	if (!status && start) {
		ringtap_probe_loaded.started = ringtap_probe_start();
		snprintf(ringtap_probe_loaded.text, sizeof(ringtap_probe_loaded.text), "%s",
			api && ringtap_probe_loaded.started == -ENOTSUP ? api->why() : "");
		rt_store_release(&ringtap_probe_loaded.starts, ringtap_probe_loaded.starts + 1);
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return status;
}

typedef int eal_init(int argc, char **argv);
EXPORT eal_init preloaded_init;
/* Calls are bound to it if this library is in the global scope before DPDK: those within a file
 * that contains DPDK have no version, those of a shared DPDK that of the ABI. Linkers do not see
 * it. */
__asm__(".symver preloaded_init, rte_eal_init@\n"
	".symver preloaded_init, rte_eal_init@DPDK_22\n"
	".symver preloaded_init, rte_eal_init@DPDK_23\n"
	".symver preloaded_init, rte_eal_init@DPDK_24\n"
	".symver preloaded_init, rte_eal_init@DPDK_25\n"
	".symver preloaded_init, rte_eal_init@DPDK_26\n");

/* The function that the caller would call without this library. */
static eal_init *next_init(const void *caller)
{
	void *next = dlsym(RTLD_NEXT, "rte_eal_init"), *object;
	Dl_info info;

	if (next || !dladdr(caller, &info))
		return (eal_init *)(uintptr_t)next;
	object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!object)
		return NULL;
	next = dlsym(object, "rte_eal_init");
	dlclose(object);
	return (eal_init *)(uintptr_t)next;
}

int preloaded_init(int argc, char **argv)
{
	eal_init *init = next_init(__builtin_return_address(0));

	if (!init || init == preloaded_init) {
		SAY("rte_eal_init() of the program is not found\n");
		return -1;
	}
	if (ringtap_probe_loaded.status == -EAGAIN)
		ringtap_probe_load(NULL, 0);
	return init(argc, argv);
}

EXPORT int ringtap_probe_start(void)
{
	return api ? api->start() : -ENOSYS;
}

EXPORT void ringtap_probe_stop(void)
{
	if (api)
		api->stop();
}

EXPORT int ringtap_probe_port_name(uint16_t port, const char *name)
{
	return api ? api->port_name(port, name) : -ENOSYS;
}

EXPORT int ringtap_probe_port_missed(uint16_t port, uint64_t packets)
{
	return api ? api->port_missed(port, packets) : -ENOSYS;
}

EXPORT int ringtap_probe_port_stamped(uint16_t port)
{
	return api ? api->port_stamped(port) : -ENOSYS;
}

EXPORT int ringtap_probe_port_source(uint16_t port, const struct ringtap_probe_source *source)
{
	return api ? api->port_source(port, source) : -ENOSYS;
}

EXPORT int ringtap_probe_port_count(uint16_t port, const struct ringtap_probe_counts *more)
{
	return api ? api->port_count(port, more) : -ENOSYS;
}

EXPORT void ringtap_probe_received_until(uint64_t ns)
{
	if (api)
		api->received_until(ns);
}
