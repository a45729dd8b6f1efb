/* SPDX-License-Identifier: BSD-3-Clause */
/* The LTTng provider: a shared object of its own, so that the probe does not depend on LTTng. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/fail.h"
#include "trace.h"
#include "load.h"

#define PROVIDER "libringtap-lttng.so"
#define OBJECT   "/ringtap/probe-abi" /* beside the loader, like the provider */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX - sizeof("/" PROVIDER)]; /* empty: unknown */
static bool loaded;

void rt_trace_load_early(void)
{
	char own[PATH_MAX] = RINGTAP_LIBDIR "/", *slash;
	struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1(&lock, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return;
	/* The program itself has no name here: dladdr() returns argv[0]. */
	if (map->l_name[0] && !realpath(map->l_name, own))
		return;
	slash = strstr(own, OBJECT);
	if (!slash)
		slash = strrchr(own, '/');
	if (slash && (size_t)(slash - own) < sizeof(folder))
		memcpy(folder, own, (size_t)(slash - own));
}

static int take_up(void *handle)
{
	const struct rt_tracer *t = dlsym(handle, RT_TRACER_SYMBOL);

	if (!t || t->version != RT_TRACER_VERSION || t->size != sizeof(*t))
		return -ENOEXEC;
	rt_store(&loaded, true);
	rt_trace_set_tracer(t);
	return 0;
}

/* Lock held. */
static bool find(void)
{
	void *handle = loaded ? NULL : dlopen(PROVIDER, RTLD_NOW | RTLD_NOLOAD);

	if (handle) {
		take_up(handle);
		dlclose(handle);
	}
	return loaded;
}

bool rt_trace_find_lttng(void)
{
	bool found;

	if (rt_load(&loaded))
		return true;
	/* Another thread is loading it, and takes it up itself; that may take seconds. */
	if (pthread_mutex_trylock(&lock))
		return false;
	found = find();
	pthread_mutex_unlock(&lock);
	return found;
}

/* Only root, its group and the application's user may have put the file there. */
static int trust(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	return st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && st.st_gid) ? -EPERM : 0;
}

/* Lock held. */
static int load(char *err, size_t size)
{
	char path[PATH_MAX];
	void *handle;
	int ret;

	if (!folder[0])
		return rt_fail(-ENOENT, err, size, "the folder of the probe is unknown");
	snprintf(path, sizeof(path), "%s/%s", folder, PROVIDER);
	ret = trust(path);
	ret = ret ? ret : trust(folder);
	if (ret)
		return rt_fail(ret, err, size, "%s: %s", path,
			ret == -EPERM ? "other users may write to it" : strerror(-ret));
	handle = dlopen(path, RTLD_NOW);
	if (!handle)
		return rt_fail(-ELIBACC, err, size, "%s", dlerror());
	ret = take_up(handle);
	if (ret)
		snprintf(err, size, "%s and the probe have different versions", path);
	dlclose(handle);
	return ret;
}

int rt_trace_load_lttng(char *err, size_t size)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = find() ? 0 : load(err, size);
	pthread_mutex_unlock(&lock);
	return ret;
}
