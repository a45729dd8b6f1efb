/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * USDT events of the application: 'usdt:' conditions.
 *
 * perf puts a breakpoint at each place of the event, in this process only, for as long as an event
 * of one of its threads is open. An event belongs to one thread: threads and libraries that come
 * later are looked for at each step. Times are of CLOCK_MONOTONIC, the only clock that perf and all
 * kernels share.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "usdt/process_files.h"
#include "usdt/uprobe.h"
#include "common/array.h"
#include "common/atomics.h"
#include "flight.h"
#include "conditions.h"
#include "usdt_conditions.h"

#define FILES_NS NS_PER_S /* between looks for new libraries */
#define PAGES    2        /* pages of a buffer, and one of its state; a power of two */

/* An event of one thread, all its places in one buffer. */
struct watched_thread {
	pid_t tid;
	unsigned fd_count;
	int fd[USDT_PLACES_MAX]; /* descriptors for the first places; -1: the file is gone */
	int output;              /* the one that has the buffer; -1: none */
	struct perf_event_mmap_page *buffer;
};

/* A file of the application. */
struct event_file {
	char *path; /* NULL: it does not have the event */
	dev_t device;
	ino_t inode;
};

struct usdt_condition {
	const struct trigger *trigger;
	pid_t pid;
	struct event_file *files; /* that have been looked at */
	unsigned file_count;
	uint64_t files_ns; /* when they were, CLOCK_MONOTONIC */
	struct usdt_place places[USDT_PLACES_MAX];
	unsigned file_of[USDT_PLACES_MAX]; /* file of each place */
	unsigned place_count;
	struct watched_thread *threads;
	unsigned thread_count;
	bool reported; /* that threads or libraries cannot be followed */
};

/* ---- finding the event */

/* A file may be mapped several times, also by several names; each of its breakpoints counts. */
static bool is_known(const struct usdt_condition *u, const struct stat *st)
{
	for (unsigned i = 0; i < u->file_count; i++)
		if (u->files[i].device == st->st_dev && u->files[i].inode == st->st_ino)
			return true;
	return false;
}

/* Searches the program and its libraries: the event is met wherever it is passed. */
static int find_in(void *ctx, const char *path, const char *name)
{
	struct usdt_condition *u = ctx;
	struct event_file *file;
	struct stat st;
	int n;

	(void)name;
	if (stat(path, &st) || is_known(u, &st))
		return 0;
	file = rt_array_add(u->files, u->file_count);
	if (!file)
		return -ENOMEM;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	n = elf_places(path, u->trigger->provider, u->trigger->event, u->places + u->place_count,
		USDT_PLACES_MAX - u->place_count);
	if (n > 0) {
		file->path = strdup(path);
		if (!file->path)
			return -ENOMEM;
	}
	for (int i = 0; i < n; i++)
		u->file_of[u->place_count++] = u->file_count - 1;
	return n == -E2BIG ? n : 0;
}

static int find(struct flight *f, struct usdt_condition *u)
{
	int ret = process_files_each(u->pid, find_in, u);

	if (!ret && u->place_count)
		return 0;
	if (ret == -E2BIG)
		message_print("flight: --on '%s': it has more than %d places", u->trigger->text,
			USDT_PLACES_MAX);
	else if (ret)
		message_print("flight: --on '%s': the files of '%s' (pid %d) cannot be read: %s; "
			      "run ringtap as root, outside of containers",
			u->trigger->text, f->app.name, (int)u->pid, strerror(-ret));
	else
		message_print("flight: --on '%s': no file of '%s' has this event; 'bpftrace -l "
			      "\"usdt:*\" -p %d' shows what there is",
			u->trigger->text, f->app.name, (int)u->pid);
	return ret ? ret : -ENOENT;
}

/* ---- threads */

static long page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* A descriptor, or -errno. */
static int open_place(const struct usdt_condition *u, pid_t tid, unsigned i)
{
	const struct perf_event_attr a = {.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC};

	return uprobe_open(a, u->files[u->file_of[i]].path, &u->places[i], tid);
}

static void unwatch(struct watched_thread *w)
{
	if (w->buffer)
		munmap(w->buffer, (size_t)page_size() * (PAGES + 1));
	while (w->fd_count)
		if (w->fd[--w->fd_count] >= 0)
			close(w->fd[w->fd_count]);
}

/* 0 or -errno. The first descriptor of a thread has the buffer of all. */
static int set_output(struct watched_thread *w, int fd)
{
	void *buffer;

	if (w->output >= 0)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, w->output) ? -errno : 0;
	buffer = mmap(
		NULL, (size_t)page_size() * (PAGES + 1), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (buffer == MAP_FAILED)
		return -errno;
	w->buffer = buffer;
	w->output = fd;
	return 0;
}

/* Watches the places that are new. perf opens files by name: one that was deleted or replaced has
 * no breakpoints in threads that begin later, which must not end those of the others. */
static int watch_places(const struct usdt_condition *u, struct watched_thread *w)
{
	while (w->fd_count < u->place_count) {
		int fd = open_place(u, w->tid, w->fd_count), ret;

		if (fd < 0 && fd != -ENOENT)
			return fd;
		w->fd[w->fd_count++] = fd < 0 ? -1 : fd;
		ret = fd < 0 ? 0 : set_output(w, fd);
		if (ret)
			return ret;
	}
	return 0;
}

/* 0, -ESRCH: it has ended, or -errno. */
static int watch(struct usdt_condition *u, pid_t tid)
{
	struct watched_thread *w = rt_array_add(u->threads, u->thread_count);
	int ret;

	if (!w)
		return -ENOMEM;
	w->tid = tid;
	w->output = -1;
	ret = watch_places(u, w);
	if (ret) {
		unwatch(w);
		u->thread_count--;
	}
	return ret;
}

static bool is_watched(const struct usdt_condition *u, pid_t tid)
{
	for (unsigned i = 0; i < u->thread_count; i++)
		if (u->threads[i].tid == tid)
			return true;
	return false;
}

/* Adds new processes, and forgets ended ones. */
static int follow_threads(struct usdt_condition *u)
{
	char path[64];
	struct dirent *e;
	DIR *d;
	int ret = 0;

	for (unsigned i = 0; i < u->thread_count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)u->pid,
			(int)u->threads[i].tid);
		if (!access(path, F_OK))
			continue;
		unwatch(&u->threads[i]);
		u->threads[i--] = u->threads[--u->thread_count];
	}
	snprintf(path, sizeof(path), "/proc/%d/task", (int)u->pid);
	d = opendir(path);
	while (!ret && d && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name);

		if (tid > 0 && !is_watched(u, tid))
			ret = watch(u, tid);
		if (ret == -ESRCH)
			ret = 0;
	}
	if (d)
		closedir(d);
	return ret;
}

/* ---- samples */

struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t mono_ns;
};

static void copy_out(const struct watched_thread *w, uint64_t at, void *out, size_t size)
{
	size_t bytes = (size_t)page_size() * PAGES;
	const char *data = (const char *)w->buffer + page_size();

	for (size_t i = 0; i < size; i++)
		((char *)out)[i] = data[(at + i) % bytes];
}

/* Takes all samples of a thread: their number, and the time of the first one. */
static uint64_t take(struct watched_thread *w, uint64_t *first_ns)
{
	uint64_t head, tail, n = 0;

	if (!w->buffer)
		return 0;
	/* Pairs with the kernel's barrier before it stores data_head. */
	head = rt_load_acquire(&w->buffer->data_head);
	tail = w->buffer->data_tail;
	while (tail < head) {
		struct sample s;

		copy_out(w, tail, &s, sizeof(s));
		if (s.header.size < sizeof(s.header))
			break;
		tail += s.header.size;
		if (s.header.type == PERF_RECORD_SAMPLE && !n++)
			*first_ns = s.mono_ns;
	}
	/* Pairs with the kernel's control dependency on data_tail. */
	rt_store_release(&w->buffer->data_tail, head);
	return n;
}

static void check(struct flight *f, struct usdt_condition *u)
{
	int64_t offset = (int64_t)(now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC));
	uint64_t first_ns = UINT64_MAX, events = 0;
	struct event e = {0};

	for (unsigned i = 0; i < u->thread_count; i++) {
		uint64_t ns = 0, n = take(&u->threads[i], &ns);

		events += n;
		if (!n || ns >= first_ns)
			continue;
		first_ns = ns;
		snprintf(e.where, sizeof(e.where), "thread %d", (int)u->threads[i].tid);
	}
	if (!events)
		return;
	e.from_ns = e.to_ns = first_ns + (uint64_t)offset;
	condition_met(f, u->trigger, &e);
	flight_state(f, u->trigger)->suppressed += events - 1;
}

/* ---- the conditions */

static int attach(struct flight *f, struct usdt_condition *u)
{
	int ret = find(f, u);

	if (ret)
		return ret;
	ret = follow_threads(u);
	if (ret)
		message_print(
			"flight: --on '%s': perf: %s; run ringtap as root or with CAP_SYS_ADMIN, "
			"on a kernel with uprobes",
			u->trigger->text, strerror(-ret));
	return ret;
}

/* Each place of each thread takes one; usually 1024 may be open. */
static void raise_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur == l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

int usdt_conditions_attach(struct flight *f)
{
	int ret = 0;

	f->usdt_conditions = calloc(f->cfg->trigger_count, sizeof(*f->usdt_conditions));
	if (!f->usdt_conditions)
		return -ENOMEM;
	for (unsigned i = 0; i < f->cfg->trigger_count && !ret; i++) {
		const struct trigger *t = &f->cfg->triggers[i];

		if (t->kind != TRIGGER_USDT)
			continue;
		raise_descriptors();
		f->usdt_conditions[f->usdt_condition_count] =
			(struct usdt_condition){.trigger = t, .pid = (pid_t)f->app.info.host_pid};
		ret = attach(f, &f->usdt_conditions[f->usdt_condition_count++]);
	}
	return ret;
}

/* The event in libraries that have been loaded since, for the threads that are watched already. */
static int follow_files(struct usdt_condition *u)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	unsigned before = u->place_count;
	int ret;

	if (now - u->files_ns < FILES_NS)
		return 0;
	u->files_ns = now;
	ret = process_files_each(u->pid, find_in, u);
	for (unsigned i = 0; i < u->thread_count && u->place_count > before; i++) {
		int one = watch_places(u, &u->threads[i]);

		if (one && one != -ESRCH && !ret)
			ret = one;
	}
	return ret;
}

static void follow(struct flight *f, struct usdt_condition *u)
{
	int files = follow_files(u), threads = follow_threads(u), ret = files ? files : threads;

	if (!ret || u->reported || rt_load_acquire(&f->keeper_ended))
		return;
	u->reported = true;
	message_print(
		"flight: --on '%s': perf: %s; events of new threads and libraries may be missed",
		u->trigger->text, strerror(-ret));
}

void usdt_conditions_check(struct flight *f, bool threads)
{
	for (unsigned i = 0; i < f->usdt_condition_count; i++) {
		check(f, &f->usdt_conditions[i]);
		if (threads)
			follow(f, &f->usdt_conditions[i]);
	}
}

void usdt_conditions_close(struct flight *f)
{
	for (unsigned i = 0; i < f->usdt_condition_count; i++) {
		for (unsigned k = 0; k < f->usdt_conditions[i].thread_count; k++)
			unwatch(&f->usdt_conditions[i].threads[k]);
		for (unsigned k = 0; k < f->usdt_conditions[i].file_count; k++)
			free(f->usdt_conditions[i].files[k].path);
		free(f->usdt_conditions[i].threads);
		free(f->usdt_conditions[i].files);
	}
	free(f->usdt_conditions);
	f->usdt_conditions = NULL;
	f->usdt_condition_count = 0;
}
