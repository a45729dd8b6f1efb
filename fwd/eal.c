/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "eal.h"
#include "memory.h"
#include "run_dir.h"
#include "base/util.h"

#define ARGS_MAX (4 * DEVICES_MAX + 64)
#define ARG_LEN  1024

/* EAL's messages, kept to report the first error: EAL prints several lines for one failure. */
static char *messages;
static size_t messages_len;
static FILE *log_stream;

/* The runtime folder if this process created it, else empty. */
static char own_dir[PATH_MAX];

struct args {
	char *argv[ARGS_MAX + 1];
	int argc;
	char text[ARGS_MAX][ARG_LEN];
	const char *bad;         /* the first argument that does not fit; NULL: none */
	char name[NAME_MAX + 1]; /* name of the runtime folder */
};

static void add(struct args *a, const char *word)
{
	if (a->argc == ARGS_MAX || strlen(word) >= ARG_LEN) {
		a->bad = a->bad ? a->bad : word;
	} else {
		strcpy(a->text[a->argc], word);
		a->argv[a->argc] = a->text[a->argc];
		a->argc++;
	}
}

static void add_pair(struct args *a, const char *option, const char *value)
{
	add(a, option);
	add(a, value);
}

static bool given(const struct fwd_config *c, const char *a, const char *b)
{
	for (int i = 0; i < c->eal_argc; i++)
		if (!strncmp(c->eal_argv[i], a, strlen(a)) ||
			(b && !strncmp(c->eal_argv[i], b, strlen(b))))
			return true;
	return false;
}

/* One lcore that may run on all allowed CPUs: the main thread, which does not poll. */
static void add_lcores(struct args *a)
{
	char text[256] = "0@(";
	size_t n = strlen(text);
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (int i = 0; i < CPU_SETSIZE && n < sizeof(text) - 8; i++)
		if (CPU_ISSET(i, &set))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d",
				text[n - 1] == '(' ? "" : ",", i);
	snprintf(text + n, sizeof(text) - n, ")");
	add_pair(a, "--lcores", text);
}

static uint64_t eal_mb(const struct fwd_config *c)
{
	return c->eal_bytes ? c->eal_bytes >> 20 : memory_eal_mb(c);
}

static void build(struct args *a, const struct fwd_config *c)
{
	char text[64];

	add(a, "ringtap-fwd");
	snprintf(a->name, sizeof(a->name), "ringtap-fwd-%d", getpid());
	if (c->name)
		snprintf(a->name, sizeof(a->name), "%s", c->name);
	add_pair(a, "--file-prefix", a->name);
	if (!given(c, "-l", "--lcores") && !given(c, "-c", NULL))
		add_lcores(a);
	/* Huge pages without files: nothing remains after a crash, and no hugetlbfs needs to be
	 * mounted. */
	add(a, c->no_huge ? "--no-huge" : "--in-memory");
	if (!given(c, "-m", "--socket-mem")) {
		snprintf(text, sizeof(text), "%" PRIu64, eal_mb(c));
		add_pair(a, "-m", text);
	}
	if (!c->pci_count && !given(c, "-a", "--allow") && !given(c, "-b", "--block")) {
		add(a, "--no-pci");
		/* Virtual devices accept any address; buffers are then contiguous. */
		if (!given(c, "--iova-mode", NULL))
			add_pair(a, "--iova-mode", "va");
	}
	if (c->order == ORDER_STACK)
		add_pair(a, "--mbuf-pool-ops-name", "stack");
	for (unsigned i = 0; i < c->pci_count; i++)
		add_pair(a, "-a", c->pcis[i]);
	for (unsigned i = 0; i < c->vdev_count; i++)
		add_pair(a, "--vdev", c->vdevs[i]);
	for (int i = 0; i < c->eal_argc; i++)
		add(a, c->eal_argv[i]);
}

/* Free huge pages of all sizes, in MiB. */
static uint64_t huge_free_mb(void)
{
	uint64_t mb = 0, kb, pages;
	glob_t found;

	if (glob("/sys/kernel/mm/hugepages/hugepages-*kB/free_hugepages", 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *f = fopen(found.gl_pathv[i], "re");

		if (f && fscanf(f, "%" SCNu64, &pages) == 1 &&
			sscanf(strrchr(found.gl_pathv[i], '-'), "-%" SCNu64 "kB", &kb) == 1)
			mb += pages * kb >> 10;
		if (f)
			fclose(f);
	}
	globfree(&found);
	return mb;
}

static int check_huge(const struct fwd_config *c)
{
	uint64_t need = eal_mb(c);

	if (c->no_huge || given(c, "--no-huge", "-m") || given(c, "--socket-mem", NULL) ||
		huge_free_mb() >= need)
		return 0;
	return message_fail(-ENOMEM,
		"huge pages: %" PRIu64 " MiB are needed, %" PRIu64
		" MiB are free; reserve more with "
		"'sysctl vm.nr_hugepages=N', or give --no-huge",
		need, huge_free_mb());
}

/* The first message usually names the cause; the others follow from it. */
const char *eal_error(void)
{
	char *end;

	if (!log_stream || fflush(log_stream) || !messages || !*messages)
		return NULL;
	end = strchr(messages, '\n');
	if (end)
		*end = '\0';
	return messages;
}

static void catch_messages(const struct fwd_config *c)
{
	if (c->verbose)
		return;
	log_stream = open_memstream(&messages, &messages_len);
	if (log_stream)
		rte_openlog_stream(log_stream);
	rte_log_set_global_level(RTE_LOG_ERR);
}

/* Discards standard output and error during rte_eal_init(): at a wrong argument EAL prints its
 * whole usage there, not to its log. */
static int initialize(struct args *a, bool verbose)
{
	int out = verbose ? -1 : dup(STDOUT_FILENO), err = verbose ? -1 : dup(STDERR_FILENO);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int ret;

	if (out >= 0 && err >= 0 && null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	ret = rte_eal_init(a->argc, a->argv);
	fflush(stdout); /* while it is /dev/null */
	if (out >= 0 && err >= 0) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
	}
	close(out);
	close(err);
	close(null);
	return ret;
}

/* Rejects the folder of a running process, and records whether this process creates it. A folder
 * left by another process is used, but not removed at the end. */
static int take_dir(const char *name)
{
	char dir[PATH_MAX];

	run_dir_path(dir, name);
	if (run_dir_used(dir))
		return message_fail(-EBUSY,
			"--name %s: another DPDK application runs under this name; see 'ringtap list'",
			name);
	snprintf(own_dir, sizeof(own_dir), "%s", run_dir_exists(dir) ? "" : dir);
	return 0;
}

static void leave_dir(void)
{
	const char *path = rte_eal_get_runtime_dir();

	/* An argument behind -- may have changed the folder. */
	if (own_dir[0] && path && !strcmp(path, own_dir))
		run_dir_remove(own_dir);
	own_dir[0] = '\0';
}

int eal_start(const struct fwd_config *c)
{
	static struct args a;
	int ret = check_huge(c);
	const char *why;

	if (ret)
		return ret;
	run_dir_sweep("ringtap-fwd-");
	build(&a, c);
	if (!c->verbose)
		add_pair(&a, "--log-level", "error");
	if (a.bad)
		return message_fail(-E2BIG,
			"EAL argument %.40s…: too long or too many arguments; the maximum is %d "
			"arguments of %d characters",
			a.bad, ARGS_MAX, ARG_LEN - 1);
	ret = take_dir(a.name);
	if (ret)
		return ret;
	catch_messages(c);
	if (initialize(&a, c->verbose) >= 0)
		return 0;
	ret = rte_errno ? -rte_errno : -EINVAL;
	why = eal_error();
	message_print("DPDK does not start: %s; --verbose prints its messages",
		why ? why : rte_strerror(-ret));
	leave_dir();
	return ret;
}

void eal_stop(void)
{
	rte_eal_cleanup();
	leave_dir();
	rte_openlog_stream(NULL);
	if (log_stream)
		fclose(log_stream);
	free(messages);
	log_stream = NULL;
	messages = NULL;
}

int eal_enter_thread(void)
{
	return rte_thread_register() ? -rte_errno : 0;
}

void eal_leave_thread(void)
{
	rte_thread_unregister();
}
