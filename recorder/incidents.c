/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "incidents.h"

bool incident_is_name(const char *name)
{
	static const char form[] = "ddddddddTdddddd.dddddd-";
	size_t i;

	for (i = 0; form[i]; i++)
		if (form[i] == 'd' ? name[i] < '0' || name[i] > '9' : name[i] != form[i])
			return false;
	return !name[i + strspn(name + i, "." INCIDENT_NAME_CHARS)];
}

static int is_incident(const struct dirent *e)
{
	return incident_is_name(e->d_name);
}

int incidents_list(struct incidents *l, const char *folder)
{
	l->count = scandir(folder, &l->list, is_incident, alphasort);
	return l->count < 0 ? -errno : 0;
}

void incidents_free(struct incidents *l)
{
	for (int i = 0; i < l->count; i++)
		free(l->list[i]);
	if (l->count >= 0)
		free(l->list);
}

int incident_open(const char *folder, const char *name)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	fd = fd < 0 ? -errno : fd;
	free(path);
	return fd;
}
