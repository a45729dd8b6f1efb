/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/loaded.h"
#include "hold.h"
#include "image.h"
#include "inject.h"
#include "judge.h"
#include "provide.h"
#include "remote.h"

#define RETURN_MS 10000 /* for dlopen(): another thread may hold the dynamic loader's lock */
#define OTHERS_MS 15000 /* for other attaches; together with ours less than a minute */
#define MAPPED_MS 100   /* for the mapping of all segments of the probe */
#define START_MS  10000 /* wait for DPDK to start */
#define EXEC_MS   500   /* wait for the kernel to execute a program */
#define POLL_MS   5

struct work {
	struct rt_process p;
	const struct rt_inject_options *opts;
	struct rt_call call;
	struct rt_provided files;
	char *err;
	size_t errlen;
};

static int fail(struct work *w, int error, const char *text)
{
	return rt_fail(error, w->err, w->errlen, "%s", text);
}

static int traced(struct work *w)
{
	int tracer = (int)rt_remote_tracer(w->p.pid);

	if (!tracer)
		return fail(w, -EBUSY,
			"another process has traced it until now, such as a debugger; try again");
	return rt_fail(-EBUSY, w->err, w->errlen,
		"process %d traces it, such as a debugger or strace; end that first", tracer);
}

static int not_called(struct work *w, int error)
{
	switch (error) {
	case -EPERM: return rt_judge_permission(&w->p, w->err, w->errlen);
	case -EBUSY: return traced(w);
	case -EHOSTDOWN:
		return rt_fail(error, w->err, w->errlen,
			"it is stopped; continue it with 'kill -CONT %d'", (int)w->p.pid);
	case -ENXIO:
		return fail(w, error,
			"it has no thread that can be interrupted: neither DPDK's telemetry thread "
			"nor its interrupt thread sleeps; try again, or start it with -d");
	case -ESRCH: return fail(w, error, "it has ended, or runs another program now");
	case -EADDRNOTAVAIL:
		return fail(
			w, error, "its C library is mapped in an unknown way; start it with -d");
	case -ENOTSUP:
		return fail(w, error,
			"the registers of its thread cannot be read and restored: the kernel does "
			"not show them, it has a shadow stack, or AMX tiles are in use; start it "
			"with -d");
	case -EACCES:
		return fail(w, error,
			"its seccomp filter would end it when it loads a library, or ask a "
			"supervisor; start it with -d, or allow the calls of dlopen()");
	case -ETIMEDOUT:
		return fail(w, error,
			"its thread does not stop: it may be frozen or hang in the kernel; try "
			"again when it runs");
	default:
		return rt_fail(error, w->err, w->errlen, "cannot interrupt its thread: %s",
			strerror(-error));
	}
}

/* Calls a function of the process and waits for its end. */
static int call(struct work *w)
{
	struct rt_idle used;
	int ret = rt_remote_call(&w->p, &w->call, &used);

	if (ret)
		return not_called(w, ret);
	ret = rt_remote_wait(w->p.pid, &used, RETURN_MS);
	if (ret == -ESRCH)
		return fail(w, ret, "it ended meanwhile");
	if (ret)
		return fail(w, ret,
			"its thread has not returned yet: another one may hold the lock of the "
			"dynamic loader; attach again later, which shows whether the probe is "
			"loaded");
	return 0;
}

/* 0; -ENOENT: the library is not loaded, or not completely. */
static int open_loaded(struct work *w, struct rt_image *image)
{
	const struct rt_map *map;
	int ret = rt_process_refresh(&w->p);

	map = ret ? NULL : rt_process_find(&w->p, RT_PROBE_NAME);
	return map ? rt_image_open(image, &w->p, map) : -ENOENT;
}

/* Reads what the library in the process shows, and finds its function. */
static int read_loaded(struct work *w, struct rt_loaded *loaded, uint64_t *function)
{
	struct rt_image image;
	uint64_t data;
	int ret = open_loaded(w, &image);

	*function = 0;
	if (ret)
		return ret;
	data = rt_image_symbol(&image, RT_LOADED_SYMBOL);
	*function = rt_image_symbol(&image, RT_LOAD_SYMBOL);
	rt_image_close(&image);
	if (!data || !*function)
		return -EPROTOTYPE;
	ret = rt_process_read(w->p.pid, data, loaded, sizeof(*loaded));
	loaded->text[sizeof(loaded->text) - 1] = 0;
	return !ret && loaded->version != RT_LOADED_VERSION ? -EPROTOTYPE : ret;
}

/* Until the dynamic loader has relocated the library and run its constructor, which sets the
 * status: an attach that was killed may have begun that. No function of it may be called before. */
static int read_complete(struct work *w, struct rt_loaded *loaded, uint64_t *function)
{
	int ret = 0;

	for (int ms = 0; ms < RETURN_MS; ms++) {
		ret = read_loaded(w, loaded, function);
		/* Between the first mapping of the file and those of its segments, the data are
		 * others. */
		if (ret == -EPROTOTYPE && *function && ms < MAPPED_MS)
			ret = -EAGAIN;
		if (ret != -EAGAIN && (ret || loaded->status <= 0))
			return ret;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return -ETIMEDOUT;
}

static int check_loaded(struct work *w, struct rt_loaded *loaded, uint64_t *function)
{
	int ret = read_complete(w, loaded, function);

	if (ret == -ETIMEDOUT)
		return fail(w, ret,
			"its dynamic loader has not finished with the probe: another thread may "
			"hold its lock; try again");
	if (ret == -EPROTOTYPE)
		return fail(w, ret,
			"it has loaded a libringtap-probe.so of another version; restart it, or use "
			"the ringtap that the probe came with");
	if (ret)
		return rt_fail(-ELIBACC, w->err, w->errlen,
			"its dlopen() of %s failed: a security policy or a limit may forbid it; "
			"start it with -d",
			w->files.path);
	if (loaded->status < 0)
		return rt_fail(-ELIBACC, w->err, w->errlen, "the probe cannot be loaded: %s",
			loaded->text);
	return 0;
}

static int load(struct work *w)
{
	int ret = rt_provide(&w->files, &w->p, w->opts->probe, w->err, w->errlen);

	if (ret)
		return ret;
	w->call.text = w->files.path;
	w->call.args[1] = RTLD_NOW;
	ret = call(w);
	return ret;
}

/* The library was loaded in vain: nothing of it stays. If that fails, only its pages are lost. */
static void unload(const struct work *w, uint64_t handle)
{
	char err[256];
	struct work c = *w;

	c.err = err;
	c.errlen = sizeof(err);
	c.call.function = rt_judge_function(&w->p, "dlclose");
	c.call.text = NULL;
	c.call.args[0] = handle;
	if (handle && c.call.function)
		(void)call(&c);
}

/* For another attempt, the object beside the library again: copies were removed. */
static int provide_again(struct work *w)
{
	const struct rt_map *map = rt_process_find(&w->p, RT_PROBE_NAME);

	if (!map || !strstr(map->path, " (deleted)"))
		return 0;
	return rt_provide(&w->files, &w->p, w->opts->probe, w->err, w->errlen);
}

/* The library is loaded: its function loads the object if necessary, and starts the control
 * thread where telemetry does not. */
static int start(struct work *w, struct rt_loaded *loaded, uint64_t function, bool thread)
{
	uint32_t before = loaded->starts;
	int ret = loaded->status < 0 ? provide_again(w) : 0;

	if (ret)
		return ret;
	w->call.function = function;
	w->call.text = w->files.path[0] ? w->files.path : NULL;
	w->call.args[1] = thread;
	ret = call(w);
	if (!ret)
		ret = check_loaded(w, loaded, &function);
	if (ret || !thread)
		return ret;
	if (loaded->starts == before)
		return fail(w, -EBUSY, "another process attaches at the moment; try again");
	if (!loaded->started || loaded->started == -EALREADY)
		return 0;
	return rt_fail(loaded->started, w->err, w->errlen, "the probe cannot start: %s",
		loaded->started == -ENOTSUP && loaded->text[0] ? loaded->text
		: loaded->started == -ENOTSUP
			? "it is a DPDK secondary process; attach to its primary"
		: loaded->started == -EAGAIN ? "DPDK is not initialised in it; try again"
					     : strerror(-loaded->started));
}

/* EAL makes the interrupt thread, which can be interrupted, long before telemetry and memory. */
static int wait_for_start(struct work *w)
{
	for (int ms = 0; !rt_judge_started(&w->p); ms += POLL_MS) {
		if (ms >= START_MS)
			return fail(w, -EAGAIN, "DPDK is not initialised in it; try again");
		nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
		if (rt_process_refresh(&w->p))
			return fail(w, -ESRCH, "it has ended");
	}
	return 0;
}

static int inject(struct work *w)
{
	struct rt_loaded loaded = {.status = 1};
	bool telemetry;
	uint64_t function = 0;
	int ret = w->call.hold == -ETIMEDOUT
			  ? fail(w, -EBUSY,
				    "another 'ringtap attach' to it has not finished; try again")
			  : rt_judge(&w->p, w->opts, w->err, w->errlen);

	if (!ret && !(w->call.sigreturn = rt_arch_sigreturn(&w->p)))
		ret = fail(w, -ENOTSUP,
			"its C library is not glibc as far as known; start it with -d");
	if (!ret && w->call.hold < 0) /* the reasons before help more */
		ret = not_called(w, w->call.hold == -EACCES ? -EPERM : w->call.hold);
	ret = ret ? ret : wait_for_start(w);
	if (ret)
		return ret;
	telemetry = rt_has_telemetry(w->p.pid);
	if (!rt_process_find(&w->p, RT_PROBE_NAME)) {
		w->call.function = rt_judge_function(&w->p, "dlopen");
		ret = load(w);
		if (ret)
			return ret;
	}
	ret = check_loaded(w, &loaded, &function);
	if (ret == -ELIBACC && function && !w->files.path[0])
		ret = 0; /* it failed before: try again */
	else if (ret == -ELIBACC && function)
		unload(w, loaded.handle);
	if (ret || (telemetry && !loaded.status))
		return ret;
	return start(w, &loaded, function, !telemetry);
}

/* A process that executes its program just now has no mapping of it for a moment. */
static int open_process(struct rt_process *p, pid_t pid)
{
	for (int ms = 0;; ms += POLL_MS) {
		int ret = rt_process_open(p, pid);

		if (ret || rt_process_program(p) || ms >= EXEC_MS)
			return ret;
		rt_process_close(p);
		nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
	}
}

int rt_inject(pid_t pid, const struct rt_inject_options *opts, char *err, size_t errlen)
{
	/* First: what is read afterwards is that of this program, and not changed by others. */
	struct work w = {.opts = opts,
		.call = {.hold = rt_hold(pid, OTHERS_MS)},
		.files = {.at = -1, .folder = -1},
		.err = err,
		.errlen = errlen};
	int ret = open_process(&w.p, pid);

	err[0] = 0;
	if (ret == -EACCES || ret == -EPERM)
		ret = rt_judge_permission(&w.p, err, errlen);
	else if (ret)
		ret = fail(&w, ret, ret == -ESRCH ? "no such process" : strerror(-ret));
	else
		ret = inject(&w);
	rt_provided_remove(&w.files);
	rt_process_close(&w.p);
	if (w.call.hold >= 0)
		close(w.call.hold);
	return ret;
}
