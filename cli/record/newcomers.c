/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secondary processes that start during a recording are not in it, and are reported: each makes a
 * socket for DPDK's messages in the runtime folder, mp_socket_PID_NUMBER.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "target/which_app.h"
#include "newcomers.h"
#include "record.h"
#include "base/util.h"

static int add_watch(const struct recorder *r, const struct target *t)
{
	int folder = address_open(t->dir, O_PATH | O_DIRECTORY), watch;
	char path[64];

	if (folder < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", folder);
	watch = inotify_add_watch(r->newcomers_fd, path, IN_CREATE | IN_ONLYDIR);
	close(folder);
	return watch;
}

/* Without inotify nothing is reported. */
void newcomers_begin(struct recorder *r)
{
	r->newcomers_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (unsigned i = 0; r->newcomers_fd >= 0 && i < r->targets.named; i++) {
		struct target *t = &r->targets.list[i];

		t->watch = t->secondary ? -1 : add_watch(r, t);
	}
}

static void report(const struct recorder *r, const struct inotify_event *e)
{
	unsigned long long number;
	int pid;

	if (!e->len || sscanf(e->name, "mp_socket_%d_%llx", &pid, &number) != 2)
		return;
	for (unsigned i = 0; i < r->targets.named; i++)
		if (r->targets.list[i].watch == e->wd)
			message_print("%s: a secondary process of '%s' has started (pid %d): its "
				      "packets are not captured; record again",
				r->cfg->capture.command, r->targets.list[i].name, pid);
}

void newcomers_check(struct recorder *r)
{
	char events[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = r->newcomers_fd < 0 ? 0 : read(r->newcomers_fd, events, sizeof(events));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(events + at);

		report(r, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

void newcomers_end(struct recorder *r)
{
	if (r->newcomers_fd >= 0)
		close(r->newcomers_fd);
	r->newcomers_fd = -1;
}
