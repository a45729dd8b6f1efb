/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/status.h"
#include "reader/text.h"
#include "connect.h"
#include "reader/export.h"
#include "halt.h"
#include "ringtap/reader.h"

bool rt_proc_is_ours(void)
{
	char text[16];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = 0;
	return atol(text) == getpid();
}

static bool group_is_frozen(const char *group)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char path[PATH_MAX + 64], value[8];

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(path, sizeof(path), "%s%s/cgroup.events", roots[i], group);
		if (rt_file_value(path, "frozen ", value, sizeof(value)) && value[0] == '1')
			return true;
	}
	return false;
}

static bool group_is_frozen_v1(const char *group)
{
	char path[PATH_MAX + 64], value[8];

	snprintf(path, sizeof(path), "/sys/fs/cgroup/freezer%s/freezer.state", group);
	return rt_file_value(path, "FROZEN", value, sizeof(value));
}

static bool is_frozen(pid_t pid)
{
	char path[64], line[PATH_MAX];
	bool frozen = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	while (f && !frozen && fgets(line, sizeof(line), f)) {
		char *kind = strchr(line, ':'), *group = kind ? strchr(kind + 1, ':') : NULL;

		line[strcspn(line, "\n")] = 0;
		if (!group)
			continue;
		*group++ = 0;
		frozen = !strcmp(kind, ":")        ? group_is_frozen(group)
			 : strstr(kind, "freezer") ? group_is_frozen_v1(group)
						   : false;
	}
	if (f)
		fclose(f);
	return frozen;
}

bool rt_halted(pid_t pid, char *err, size_t errlen)
{
	char state[16], tracer[16];

	if (pid <= 0 || !rt_proc_is_ours())
		return false;
	rt_process_status(pid, "State", state, sizeof(state));
	if (*state == 'T') {
		snprintf(err, errlen, "it is stopped (SIGSTOP); continue it with: kill -CONT %d",
			(int)pid);
	} else if (*state == 't') {
		rt_process_status(pid, "TracerPid", tracer, sizeof(tracer));
		snprintf(err, errlen,
			"its process %d is stopped by a debugger (pid %s); continue it there",
			(int)pid, tracer);
	} else if (is_frozen(pid)) {
		snprintf(err, errlen, "its process %d is frozen; thaw its control group", (int)pid);
	} else {
		return false;
	}
	return true;
}

bool rt_peer_halted(int fd, char *err, size_t errlen)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       rt_halted(peer.pid, err, errlen);
}

bool rt_folder_halted(const struct rt_folder *f, char *err, size_t errlen)
{
	pid_t pid;

	return rt_folder_locked(f, &pid) && rt_halted(pid, err, errlen);
}

EXPORT bool ringtap_process_halted(uint32_t pid, char *why, size_t size)
{
	char unused[RT_TEXT_LEN];

	rt_default_text(&why, &size, unused, sizeof(unused));
	return rt_halted((pid_t)pid, why, size);
}
