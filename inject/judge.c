/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/fail.h"
#include "common/loaded.h"
#include "common/status.h"
#include "idle.h"
#include "image.h"
#include "judge.h"
#include "seccomp.h"

#define EAL        "librte_eal.so"
#define OLDEST_ABI 22 /* DPDK 21.11 */

/* That the probe opens, and the one of accept(). */
#define DESCRIPTORS 4

/* The file that EAL maps to share it with secondary processes, and its begin when EAL has been
 * initialised. */
#define CONFIG    "*/dpdk/*/config"
#define RTE_MAGIC 19820526u

uint64_t rt_judge_bytes = 512ull << 20; /* a second or two; programs have some 100 MB */

struct judge {
	const struct rt_process *p;
	const struct rt_inject_options *opts;
	char *err;
	size_t errlen;
};

#define REFUSE(j, error, ...) (snprintf((j)->err, (j)->errlen, __VA_ARGS__), (error))

static bool exports(const struct rt_process *p, const struct rt_map *map, const char *symbol)
{
	struct rt_image i;
	bool found;

	if (!map || rt_image_open(&i, p, map))
		return false;
	found = rt_image_symbol(&i, symbol) != 0;
	rt_image_close(&i);
	return found;
}

static bool hides(const struct rt_process *p, const char *symbol)
{
	const struct rt_map *map = rt_process_program(p);
	struct rt_image i;
	bool found;

	if (!map || rt_image_open(&i, p, map))
		return false;
	found = rt_image_has_hidden(&i, symbol);
	rt_image_close(&i);
	return found;
}

uint64_t rt_judge_function(const struct rt_process *p, const char *name)
{
	/* Up to glibc 2.33 it was in a library of its own. */
	static const char *const names[] = {"libc.so.6", "libdl.so.2", "libdl-2."};
	uint64_t at = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !at; i++) {
		const struct rt_map *map = rt_process_find(p, names[i]);
		struct rt_image image;

		if (!map || rt_image_open(&image, p, map))
			continue;
		at = rt_image_symbol(&image, name);
		rt_image_close(&image);
	}
	return at;
}

int rt_judge_permission(const struct rt_process *p, char *err, size_t errlen)
{
	char scope[16] = "", value[64];

	rt_process_status(p->pid, "Uid", value, sizeof(value));
	if (geteuid() && value[0] && (uid_t)atoi(value) != geteuid())
		snprintf(err, errlen, "it belongs to user %d; run ringtap as root or as that user",
			atoi(value));
	else if (rt_read_text("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) > 0 &&
		 atoi(scope) >= 1)
		snprintf(err, errlen,
			"the kernel forbids tracing (kernel.yama.ptrace_scope is %d); %s",
			atoi(scope),
			atoi(scope) > 2
				? "restart the process with -d, as only a reboot changes that"
			: geteuid() ? "run ringtap as root"
				    : "give root CAP_SYS_PTRACE, which it lacks here");
	else
		snprintf(err, errlen,
			"not permitted; run ringtap as root with CAP_SYS_PTRACE, outside of "
			"containers, or check the security policy (SELinux, AppArmor)");
	return -EPERM;
}

static int judge_state(const struct judge *j)
{
	char value[64];

	rt_process_status(j->p->pid, "TracerPid", value, sizeof(value));
	if (atoi(value))
		return REFUSE(j, -EBUSY,
			"process %d traces it, such as a debugger or strace; end that first",
			atoi(value));
	rt_process_status(j->p->pid, "State", value, sizeof(value));
	if (value[0] == 'T')
		return REFUSE(j, -EHOSTDOWN, "it is stopped; continue it with 'kill -CONT %d'",
			(int)j->p->pid);
	rt_process_status(j->p->pid, "x86_Thread_features", value, sizeof(value));
	if (strstr(value, "shstk"))
		return REFUSE(
			j, -ENOTSUP, "it has a shadow stack, which would end it; start it with -d");
	return 0;
}

static int judge_program(const struct judge *j)
{
	const struct rt_map *program = rt_process_program(j->p);
	struct rt_image i;
	bool ours;

	if (!program || rt_image_open(&i, j->p, program))
		return REFUSE(j, -EACCES,
			"its program file cannot be read; run ringtap as root, outside of "
			"containers");
	ours = rt_image_ours(&i);
	rt_image_close(&i);
	return ours ? 0
		    : REFUSE(j, -ENOTSUP,
			      "it is a program for another processor, or a 32-bit one; there is no "
			      "probe for it");
}

/* DPDK may be in a shared library of another name: the first from here on, without the file of
 * except. libringtap-probe.so exports the function, too, for LD_PRELOAD. */
static const struct rt_map *next_export(
	const struct rt_process *p, size_t from, const struct rt_map *except)
{
	for (size_t i = from; i < p->map_count && !rt_image_limit_reached(); i++) {
		const struct rt_map *m = &p->maps[i];

		if (!m->offset && m->ino && m->path[0] == '/' &&
			!(except && m->ino == except->ino && m->dev == except->dev) &&
			exports(p, m, "rte_eal_init") && !exports(p, m, RT_LOADED_SYMBOL))
			return m;
	}
	return NULL;
}

/* The file that has DPDK's EAL and exports it; NULL: there is none. */
static const struct rt_map *find_eal(const struct rt_process *p)
{
	const struct rt_map *eal = rt_process_find(p, EAL), *program = rt_process_program(p);

	if (eal)
		return eal;
	if (exports(p, program, "rte_eal_init"))
		return program;
	return hides(p, "rte_eal_init") ? NULL : next_export(p, 0, NULL);
}

/* The loader (probe/control/loader.c) finds the DPDK of the global scope, else the only one. Which
 * scope the libraries of a shared DPDK have is not visible here. */
static const struct rt_map *second_eal(const struct rt_process *p, const struct rt_map *eal)
{
	if (eal == rt_process_find(p, EAL) || eal == rt_process_program(p))
		return NULL;
	return next_export(p, (size_t)(eal - p->maps) + 1, eal);
}

static int judge_dpdk(const struct judge *j)
{
	const struct rt_map *eal = find_eal(j->p), *second = eal ? second_eal(j->p, eal) : NULL;

	if (second)
		return REFUSE(j, -ENOTSUP,
			"%s and %s contain a DPDK each; the probe serves only one",
			strrchr(eal->path, '/') + 1, strrchr(second->path, '/') + 1);
	if (eal)
		return 0;
	if (rt_image_limit_reached())
		return REFUSE(j, -E2BIG,
			"it maps more and larger files than are searched for DPDK; start it with "
			"-d");
	if (hides(j->p, "rte_eal_init") || rt_has_eal(j->p->pid))
		return REFUSE(j, -ENOTSUP,
			"it contains a DPDK whose symbols are hidden: it exports no symbols; link "
			"a program with -Wl,--export-dynamic, as pkg-config's static flags do, and a "
			"plugin without -Wl,--exclude-libs");
	return REFUSE(j, -ENOEXEC, "there is no DPDK in it; 'ringtap list' shows applications");
}

/* An upgrade replaces files; those that are mapped are found with a capability only. */
static bool is_replaced(const struct judge *j, const char *name)
{
	const struct rt_map *map = rt_process_find(j->p, name);
	int fd = map && strstr(map->path, " (deleted)") ? rt_process_file(j->p, map) : 0;

	if (fd > 0)
		close(fd);
	return fd < 0;
}

static int judge_libc(const struct judge *j)
{
	if (rt_process_find(j->p, "ld-musl") || rt_process_find(j->p, "libc.musl"))
		return REFUSE(j, -ENOTSUP,
			"its C library is musl; the probe needs glibc: start it with glibc");
	if (!rt_judge_function(j->p, "dlopen") &&
		(is_replaced(j, "libc.so.6") || is_replaced(j, "libc-2.")))
		return REFUSE(j, -EACCES,
			"the file of its C library was replaced since it started, such as by an "
			"upgrade; run ringtap as root, outside of containers, or restart it");
	if (!rt_judge_function(j->p, "dlopen"))
		return REFUSE(j, -ENOTSUP,
			"it has no dlopen() of glibc, such as fully static programs; link it with "
			"shared libraries of C");
	return 0;
}

/* EAL has the name of its folder of drivers in it, which ends with the ABI: dpdk/pmds-23.0. */
static unsigned abi_in_file(const struct rt_process *p)
{
	const struct rt_map *eal = find_eal(p);
	struct rt_image i;
	unsigned abi;

	if (!eal || rt_image_open(&i, p, eal))
		return 0;
	abi = rt_image_number(&i, "dpdk/pmds-");
	rt_image_close(&i);
	return abi;
}

/* The number of DPDK's ABI: that of the November release's year after it. 0: unknown. */
static unsigned abi_of(const struct judge *j)
{
	const struct rt_map *eal = rt_process_find(j->p, EAL ".");
	unsigned year, month;

	if (j->opts->dpdk && sscanf(j->opts->dpdk + strcspn(j->opts->dpdk, "0123456789"), "%u.%u",
				     &year, &month) == 2)
		return month >= 11 ? year + 1 : year;
	if (eal)
		return (unsigned)atoi(strrchr(eal->path, '/') + 1 + strlen(EAL "."));
	return abi_in_file(j->p);
}

static int judge_files(const struct judge *j)
{
	const char *slash = strrchr(j->opts->probe, '/');
	unsigned abi = abi_of(j);
	struct rt_image i;
	char path[PATH_MAX];
	bool fits;

	if (rt_image_open_file(&i, j->opts->probe))
		return REFUSE(j, -ENOENT, "%s is missing or damaged; install ringtap's probe",
			j->opts->probe);
	fits = rt_image_ours(&i) && rt_image_symbol(&i, RT_LOAD_SYMBOL);
	rt_image_close(&i);
	if (!fits)
		return REFUSE(j, -ENOEXEC,
			"%s is of another processor or version; install ringtap's probe",
			j->opts->probe);
	if (abi && abi < OLDEST_ABI)
		return REFUSE(j, -ENOTSUP,
			"its DPDK is older than 21.11; the probe supports 21.11 and later");
	snprintf(path, sizeof(path), "%.*s/ringtap/probe-abi%u.so",
		(int)(slash ? slash - j->opts->probe : 0), j->opts->probe, abi);
	if (abi && access(path, R_OK))
		return REFUSE(j, -ELIBACC,
			"there is no probe for its DPDK %u.11 (ABI %u): %s is missing; build "
			"ringtap with that DPDK, or install the package for it",
			abi - 1, abi, path);
	return 0;
}

/* Descriptors that are open below the limit. -errno. */
static int count_open(pid_t pid, rlim_t limit)
{
	char path[64];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d)
		return -errno;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.' && strtoul(e->d_name, NULL, 10) < limit;
	closedir(d);
	return n;
}

/* accept() has reserved its descriptor, gives it up when it is interrupted, and fails if it gets
 * none again: DPDK's telemetry thread then ends. */
int rt_judge_descriptors(pid_t pid, char *err, size_t errlen)
{
	struct rlimit limit;
	int open;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, &limit) || limit.rlim_cur > INT_MAX)
		return 0;
	open = count_open(pid, limit.rlim_cur);
	if (open < 0 || open + DESCRIPTORS <= (int)limit.rlim_cur)
		return 0;
	return rt_fail(-EMFILE, err, errlen,
		"it has too few descriptors for the probe: %d are left of %d; raise its limit with "
		"'prlimit --pid %d --nofile=NUMBER'",
		(int)limit.rlim_cur - open, (int)limit.rlim_cur, (int)pid);
}

int rt_judge(
	const struct rt_process *p, const struct rt_inject_options *opts, char *err, size_t errlen)
{
	const struct judge j = {p, opts, err, errlen};
	int ret;

	rt_image_limit(rt_judge_bytes);
	ret = judge_program(&j);
	ret = ret ? ret : judge_dpdk(&j);
	ret = ret ? ret : judge_libc(&j);
	ret = ret ? ret : judge_files(&j);
	rt_image_limit(UINT64_MAX);
	ret = ret ? ret : judge_state(&j);
	ret = ret ? ret : rt_judge_descriptors(p->pid, err, errlen);
	return ret ? ret : rt_judge_seccomp(p->pid, err, errlen);
}

bool rt_judge_started(const struct rt_process *p)
{
	uint32_t magic;

	for (size_t i = 0; i < p->map_count; i++) {
		const struct rt_map *m = &p->maps[i];

		if (!m->offset && m->perms[3] == 's' && !fnmatch(CONFIG, m->path, 0) &&
			!rt_process_read(p->pid, m->start, &magic, sizeof(magic)))
			return magic == RTE_MAGIC;
	}
	/* It maps this before it makes threads. */
	return rt_has_eal(p->pid);
}
