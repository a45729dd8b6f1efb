/* SPDX-License-Identifier: BSD-3-Clause */
/* Incidents in a folder of a flight recorder, by their names. */
#ifndef RINGTAP_RECORDER_INCIDENTS_H
#define RINGTAP_RECORDER_INCIDENTS_H

#include <dirent.h>
#include <stdbool.h>

/* Characters in names of conditions, which are parts of the names of incidents. */
#define INCIDENT_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

struct incidents {
	struct dirent **list; /* oldest first */
	int count;
};

/* 20260102T030405.678901-NAME; nothing else is listed, such as names that contain lines. */
bool incident_is_name(const char *name);
/* 0 or -errno. Free in any case. */
int incidents_list(struct incidents *l, const char *folder);
void incidents_free(struct incidents *l);
/* Opens one, which may have become a link to another folder. A descriptor, or -errno. */
int incident_open(const char *folder, const char *name);

#endif
