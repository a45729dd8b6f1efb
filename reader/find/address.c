/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "abstract.h"
#include "address.h"

#define DIGITS     "0123456789"
#define PID_DIGITS 9 /* at most; the kernel's limit is 4194304 */

/* The process id that text begins with; *rest becomes what follows. 0: none. */
static pid_t take_pid(const char *text, const char **rest)
{
	size_t digits = strspn(text, DIGITS);

	*rest = text + digits;
	if (!digits || digits > PID_DIGITS || *text == '0')
		return 0;
	return (pid_t)strtol(text, NULL, 10);
}

int rt_socket_instance(const char *name, const char *base)
{
	size_t len = strlen(base), digits;
	unsigned long n;

	if (strncmp(name, base, len))
		return -1;
	name += len;
	if (!*name)
		return 0;
	digits = strspn(name + 1, DIGITS);
	if (*name != ':' || !digits || digits > 3 || name[1] == '0' || name[1 + digits])
		return -1;
	n = strtoul(name + 1, NULL, 10);
	return n < RT_INSTANCES_MAX ? (int)n : -1;
}

int rt_socket_secondary(const char *name, pid_t *pid)
{
	size_t len = strlen(RT_SOCKET_SECONDARY);

	if (strncmp(name, RT_SOCKET_SECONDARY, len))
		return -1;
	*pid = take_pid(name + len, &name);
	return *pid ? rt_socket_instance(name, "") : -1;
}

pid_t rt_socket_mp(const char *name)
{
	size_t len = strlen(RT_MP_SOCKET), digits;
	pid_t pid;

	if (strncmp(name, RT_MP_SOCKET, len))
		return 0;
	pid = take_pid(name + len, &name);
	digits = *name == '_' ? strspn(name + 1, DIGITS "abcdef") : 0;
	return digits && !name[1 + digits] ? pid : 0;
}

/* Cuts "#N" off the end. The number; 0: there is none. */
static unsigned take_instance(char *text)
{
	char *mark = strrchr(text, '#'), suffix[8];
	int n;

	if (!mark)
		return 0;
	snprintf(suffix, sizeof(suffix), ":%.6s", mark + 1);
	n = rt_socket_instance(suffix, "");
	if (n <= 0)
		return 0;
	*mark = 0;
	return (unsigned)n;
}

/* Cuts "/PID" off the end. 0: there is none. */
static pid_t take_secondary(char *text)
{
	char *slash = strrchr(text, '/');
	const char *rest;
	pid_t pid;

	if (!slash || slash == text)
		return 0;
	pid = take_pid(slash + 1, &rest);
	if (!pid || *rest)
		return 0;
	*slash = 0;
	return pid;
}

int rt_address_split(const char *app, struct rt_address *out)
{
	struct stat st;

	*out = (struct rt_address){0};
	if (snprintf(out->dir, sizeof(out->dir), "%s", app) >= (int)sizeof(out->dir))
		return -ENAMETOOLONG;
	if (rt_is_abstract(app) || !stat(app, &st))
		return 0;
	out->instance = take_instance(out->dir);
	if (!out->instance || stat(out->dir, &st))
		out->secondary = take_secondary(out->dir);
	return 0;
}

int rt_address_suffix(const struct rt_address *a, char *out, size_t size)
{
	char pid[16] = "", number[16] = "";

	if (a->secondary)
		snprintf(pid, sizeof(pid), "/%d", (int)a->secondary);
	if (a->instance)
		snprintf(number, sizeof(number), "#%u", a->instance);
	return snprintf(out, size, "%s%s", pid, number);
}

int rt_address_socket(const struct rt_address *a, const char *base, char name[RT_SOCKET_NAME_MAX])
{
	char pid[16] = "", number[16] = "";

	if (a->secondary && strcmp(base, RT_SOCKET_NAME))
		return -ENOENT;
	if (a->secondary)
		snprintf(pid, sizeof(pid), "@%d", (int)a->secondary);
	if (a->instance)
		snprintf(number, sizeof(number), ":%u", a->instance);
	if (snprintf(name, RT_SOCKET_NAME_MAX, "%.17s%s%s", base, pid, number) >=
		RT_SOCKET_NAME_MAX)
		return -ENAMETOOLONG;
	return 0;
}
