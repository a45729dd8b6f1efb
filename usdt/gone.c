/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A probe whose file was removed after it was loaded: ringtap attach removes the copies that it
 * brings into containers.
 *
 * With -p, bpftrace looks for files by their names below /proc/PID/root. Of a removed one there is
 * /proc/PID/map_files, which bpftrace takes as the file's name, but not with -p. No other process
 * than the application and its forks has this copy. Semaphores, which -p raises, are raised here,
 * by events of perf that are not read: the kernel lowers them again with the end of this process.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/trace/trace.h"

#define TYPE_FILE     "/sys/bus/event_source/devices/uprobe/type"
#define SEMAPHORE_BIT 32 /* of perf_event_attr.config: where the semaphore is in the file */
#define PLACES_MAX    64
#define ANY_FILE      "usdt:*:ringtap:"

struct search {
	pid_t pid;
	struct trace_gone *gone;
};

static int look(void *ctx, const char *path, const char *file)
{
	struct search *s = ctx;
	struct trace_events events = {0};
	char folder[64];
	int ret;

	(void)file;
	snprintf(folder, sizeof(folder), "/proc/%d/map_files/", (int)s->pid);
	if (strncmp(path, folder, strlen(folder)) || elf_events(path, &events))
		return 0;
	ret = events.count > 0;
	elf_events_free(&events);
	if (ret)
		snprintf(s->gone->path, sizeof(s->gone->path), "%s", path);
	return ret;
}

void trace_gone_find(struct trace_gone *g, pid_t pid)
{
	struct search s = {pid, g};

	*g = (struct trace_gone){.pid = pid};
	trace_each_file(pid, look, &s);
}

char *trace_gone_names(const struct trace_gone *g, const char *program)
{
	char *out = NULL;
	const char *at;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	while ((at = strstr(program, ANY_FILE))) {
		fprintf(f, "%.*susdt:%s:ringtap:", (int)(at - program), program, g->path);
		program = at + strlen(ANY_FILE);
	}
	fputs(program, f);
	if (!fclose(f))
		return out;
	free(out);
	return NULL;
}

static int uprobe_type(void)
{
	FILE *f = fopen(TYPE_FILE, "re");
	int type = -ENOTSUP;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -ENOTSUP;
	if (f)
		fclose(f);
	return type;
}

/* A breakpoint for its semaphore only: its events are not read. */
static int raise_semaphore(struct trace_gone *g, const struct trace_place *p)
{
	struct perf_event_attr a = {.size = sizeof(a),
		.config = p->semaphore << SEMAPHORE_BIT,
		.config1 = (uintptr_t)g->path,
		.config2 = p->offset,
		.disabled = 1};
	int type = uprobe_type();
	long fd;

	if (type < 0)
		return type;
	a.type = (uint32_t)type;
	fd = syscall(SYS_perf_event_open, &a, g->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	g->fd[g->fd_count++] = (int)fd;
	return 0;
}

/* All places of an event have one semaphore. */
static int raise_of(struct trace_gone *g, const char *event)
{
	struct trace_place places[PLACES_MAX];
	int n = elf_places(g->path, "ringtap", event, places, PLACES_MAX);

	if (n <= 0 || !places[0].semaphore || g->fd_count == TRACE_GONE_MAX)
		return n < 0 ? n : 0;
	return raise_semaphore(g, &places[0]);
}

int trace_gone_raise(struct trace_gone *g, const char *program)
{
	struct trace_events events = {0};
	char name[96];
	int ret = elf_events(g->path, &events);

	for (size_t i = 0; i < events.count && !ret; i++) {
		snprintf(name, sizeof(name), ":ringtap:%s", events.list[i].name);
		if (strstr(program, name))
			ret = raise_of(g, events.list[i].name);
	}
	elf_events_free(&events);
	return ret;
}

void trace_gone_close(struct trace_gone *g)
{
	while (g->fd_count)
		close(g->fd[--g->fd_count]);
}
