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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deleted_probe.h"
#include "events.h"
#include "process_files.h"
#include "uprobe.h"

#define ANY_FILE "usdt:*:ringtap:"

struct search {
	pid_t pid;
	struct deleted_probe *probe;
};

static int find_in(void *ctx, const char *path, const char *file)
{
	struct search *s = ctx;
	struct usdt_events events = {0};
	char folder[64];
	int ret;

	(void)file;
	snprintf(folder, sizeof(folder), "/proc/%d/map_files/", (int)s->pid);
	if (strncmp(path, folder, strlen(folder)) || elf_events(path, &events))
		return 0;
	ret = events.count > 0;
	elf_events_free(&events);
	if (ret)
		snprintf(s->probe->path, sizeof(s->probe->path), "%s", path);
	return ret;
}

void deleted_probe_find(struct deleted_probe *d, pid_t pid)
{
	struct search s = {pid, d};

	*d = (struct deleted_probe){.pid = pid};
	process_files_each(pid, find_in, &s);
}

char *deleted_probe_names(const struct deleted_probe *d, const char *program)
{
	char *out = NULL;
	const char *at;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	while ((at = strstr(program, ANY_FILE))) {
		fprintf(f, "%.*susdt:%s:ringtap:", (int)(at - program), program, d->path);
		program = at + strlen(ANY_FILE);
	}
	fputs(program, f);
	if (!fclose(f))
		return out;
	free(out);
	return NULL;
}

/* A breakpoint for its semaphore only: its events are not read. */
static int raise_semaphore(struct deleted_probe *d, const struct usdt_place *p)
{
	int fd = uprobe_open((struct perf_event_attr){.disabled = 1}, d->path, p, d->pid);

	if (fd >= 0)
		d->fd[d->fd_count++] = fd;
	return fd < 0 ? fd : 0;
}

/* All places of an event have one semaphore. */
static int raise_of(struct deleted_probe *d, const char *event)
{
	struct usdt_place places[USDT_PLACES_MAX];
	int n = elf_places(d->path, "ringtap", event, places, USDT_PLACES_MAX);

	if (n <= 0 || !places[0].semaphore || d->fd_count == DELETED_PROBE_EVENTS)
		return n < 0 ? n : 0;
	return raise_semaphore(d, &places[0]);
}

int deleted_probe_raise(struct deleted_probe *d, const char *program)
{
	struct usdt_events events = {0};
	char name[96];
	int ret = elf_events(d->path, &events);

	for (size_t i = 0; i < events.count && !ret; i++) {
		snprintf(name, sizeof(name), ":ringtap:%s", events.list[i].name);
		if (strstr(program, name))
			ret = raise_of(d, events.list[i].name);
	}
	elf_events_free(&events);
	return ret;
}

void deleted_probe_close(struct deleted_probe *d)
{
	while (d->fd_count)
		close(d->fd[--d->fd_count]);
}
