/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of applications while it is made. */
#ifndef RINGTAP_READER_FIND_APPS_H
#define RINGTAP_READER_FIND_APPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "connect.h"
#include "ringtap/apps.h"
#include "views.h"

struct rt_app {
	char *name, *dir;
	unsigned number;    /* in the order found */
	unsigned folder;    /* counts those with applications */
	pid_t pid;          /* 0: unknown */
	pid_t secondary;    /* its id in its own PID namespace; 0: it is not a secondary process */
	bool foreign;       /* belongs to a user other than root and this one */
	bool primary;       /* has the shared configuration of the folder */
	size_t name_length; /* length of the file-prefix */
	bool by_process;    /* found by its process, not in the folders of the caller */
	dev_t dev;          /* device of the folder; 0 as ino: it has none */
	ino_t ino;
	unsigned instance; /* in the folder */
};

struct ringtap_apps {
	struct rt_app *apps;
	size_t count;
	char **notes;
	size_t note_count;
	struct stat seen[2]; /* parents of runtime folders that were searched */
	unsigned seen_count;
	unsigned folder_count;
	struct rt_searched {
		dev_t dev;
		ino_t ino;
	} * searched; /* folders by paths of the caller */
	size_t searched_count;
	/* First applications of root and this user; then, until a time, those of others. */
	bool foreign;
	size_t foreign_count;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
	const struct ringtap_apps_options *opts;
};

/* A runtime folder and the applications in it. */
struct rt_place {
	const char *dir, *prefix;
	struct rt_folder folder;
	bool named[RT_INSTANCES_MAX]; /* a socket with this number exists */
	unsigned named_count;
	bool locked;      /* the config file, by a process that lives */
	pid_t pid;        /* the last one that answered; 0: unknown */
	pid_t config_pid; /* process that locks the config file; 0: unknown */
	bool config_listed;
	struct ringtap_apps *list;
	struct stat file;           /* the folder; 0 as st_ino: there is none */
	const struct rt_view *view; /* its processes have this one; NULL: any */
	const char *path;           /* path of the folder in the view */
	bool known; /* the caller has the folder by another path: notes were taken */
};

/* Adds an application to the list of its place. NULL: not enough memory. */
struct rt_app *rt_apps_add(const struct rt_place *p, const struct rt_address *which, pid_t pid);
/* Whether a user is neither root nor this one. */
bool rt_apps_is_foreign(uid_t uid);
/* Whether applications of a user are searched for. */
bool rt_apps_wanted(const struct ringtap_apps *list, uid_t uid);
/* -ETIME: enough of other users. 0 */
int rt_apps_time(const struct ringtap_apps *list);

/* Adds the applications in a folder. 0 or -ENOMEM. */
int rt_apps_add_folder(struct rt_place *p);

/* Whether an application is in the list, by another path: folders are shared with containers. */
bool rt_apps_listed(const struct rt_place *p, const struct rt_address *which);

/* Whether an application counts: in a view, those of other views do not. */
bool rt_apps_take(const struct rt_place *p, const struct rt_address *which, pid_t pid);

/* Adds those that the folders of this process do not show. 0 or -ENOMEM. */
int rt_apps_add_by_process(struct ringtap_apps *list);
/* Makes their names unique: containers may choose the same file-prefix. The process id follows. */
#define RT_NAMESAKE "~"
int rt_apps_tell_apart(struct ringtap_apps *list);

#endif
