/* SPDX-License-Identifier: BSD-3-Clause */
/* The applications that a command watches: it attaches to those that start, forgets those that end,
 * and takes a snapshot of each again and again. */
#ifndef RINGTAP_MEASURE_WATCH_H
#define RINGTAP_MEASURE_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/command.h"
#include "ringtap/monitor.h"
#include "base/util.h"

/* The longest time between two snapshots. Without watch_fd(), the end of an application is noticed
 * by one. */
#define WATCH_STEP_NS NS_PER_S
#define WATCH_NAMES   64
#define WATCH_USERS   16

struct watched {
	char *name, *dir;
	struct ringtap_monitor *mon; /* NULL: not attached */
	int error;                   /* -errno: why not */
	char why[256];
	struct ringtap_app_info info;
	double tsc_hz;                 /* from the first snapshot */
	struct ringtap_snapshot *now;  /* NULL: none yet */
	struct ringtap_snapshot *mark; /* where the interval began; the first snapshot begins one */
	bool ended;                    /* now is its last snapshot */
	bool ended_before;             /* the interval that it ended in is over */
	bool secondary;                /* it is a secondary process: no NIC counters, no mempools */
	bool foreign;                  /* belongs to a user other than root and this one */
	bool shared;                   /* other processes may poll queues of its ports */
	const char *ports[WATCH_NAMES]; /* that are meant, by name or number; live as long as the
					   watch */
	size_t port_count;              /* 0: all */
	bool ports_checked;             /* by watch_check_ports() */
	/* For watch.c only. */
	uint64_t retry_ns;     /* monotonic; attach again then */
	uint64_t delay_ns;     /* between the last attempts */
	bool found;            /* by the current scan */
	bool switching;        /* collectors, without the lock: mon is in use */
	unsigned on, on_every; /* collectors that were requested last */
};

struct watch {
	/* Set by the caller before watch_init(). */
	const char *command; /* for messages */
	const char
		*names[WATCH_NAMES]; /* words for target_word(); they live as long as the watch */
	size_t name_count;           /* 0: all applications */
	char *advice[WATCH_NAMES];   /* about one that no application had at first; else NULL */
	int named[WATCH_NAMES]; /* by the last scan: index of the name's application, or -errno */
	unsigned collectors, latency_every;
	/* Without names: all users, or, if set, root, this user and these. */
	bool by_user;
	uint32_t users[WATCH_USERS];
	size_t user_count;
	bool attach;     /* load the probe where it is missing when watching begins */
	bool keep_ended; /* until watch_mark(), so that an interval has all that ended in it */
	/* Current applications; read them between watch_lock() and watch_unlock(). */
	struct watched **list;
	size_t count;
	/* For watch.c only. */
	pthread_mutex_t lock; /* recursive */
	pthread_cond_t changed;
	pthread_t thread;
	bool started, stop, hurry; /* hurry: there is something to switch */
	int ends;                  /* epoll: the monitors that are attached */
};

/* Adds an operand, APP[:PORT], to names, once. 0, or -EINVAL after a message. For struct command's
 * operand: a context that begins with its watch is one, too. */
int watch_name(void *watch, const char *name);
/* The option --users, whose value watch_add_users() takes. */
#define WATCH_USERS_OPTION(id)                                                                            \
	{                                                                                                 \
		OPTION_SET(id), OPTION_TEXT, 0, "users", "NAME[,NAME]...|all", NULL, 0, 0,                \
			"Where no APP is given: also applications of these users, by name or number, as " \
			"Open vSwitch may have its own (default: those of root and of this user)"         \
	}
/* Adds the users of a list, NAME[,NAME]... or all. 0, or a negative error after a message. */
int watch_add_users(struct watch *w, const char *list);
void watch_init(struct watch *w);
/* Attaches to applications that have started, forgets those that have ended. -errno if the folders
 * cannot be read. An application that cannot be attached to stays listed with its error and is
 * tried again. */
int watch_refresh(struct watch *w);
/* Loads the probe where it is missing, as --attach or the user at a terminal decides. Returns enum
 * status, after a message where it fails; without names, that does not end the watch. */
int watch_attach(struct watch *w);
/* The same, and watch_refresh(). */
int watch_find(struct watch *w);
/* Starts a thread that does that every second: attaching may take seconds. 0 or -errno. */
int watch_start(struct watch *w);
/* Detaches from all and frees what watch_init() and later calls took. */
void watch_free(struct watch *w);

/* Keeps the list and its entries as they are. The functions below lock by themselves. */
void watch_lock(struct watch *w);
void watch_unlock(struct watch *w);
/* A new snapshot of each application. */
void watch_step(struct watch *w);
/* Readable while an application has ended whose last snapshot is not taken; -1: none. */
int watch_fd(const struct watch *w);
/* The last snapshot of each application that has ended. */
void watch_ends(struct watch *w);
/* Ends the interval; the next one begins with the last snapshot. */
void watch_mark(struct watch *w);
/* Steps until the probes have read drivers and kernel once more since the mark, so that an interval
 * that begins then has first readings; a second at most, or 5 for threads that are known. */
void watch_settle(struct watch *w);
/* Steps until they have read them once more in the interval, a second at most: rates need two
 * readings. */
void watch_complete(struct watch *w);
/* Sets the collectors, of current and later applications. After watch_start() the thread does it:
 * an application that does not answer must not stop the caller. */
void watch_switch(struct watch *w, unsigned collectors, unsigned latency_every);
/* Applications that are named, also those that are not there. */
size_t watch_named(const struct watch *w);
/* Prints which ports that are named an application lacks, and which it has: once for each
 * application, when it has a snapshot. Returns enum status. */
int watch_check_ports(struct watch *w);
/* Applications that show statistics. */
size_t watch_attached(struct watch *w);
/* Reason n why something is missing: an application without statistics, ports without an entry, a
 * name that no application has. False: there are no more. */
#define WATCH_REASON_LEN 512
bool watch_reason(struct watch *w, size_t n, char line[WATCH_REASON_LEN]);
/* Prints them, and that there is no application at all. */
void watch_explain(struct watch *w);
/* The same and watch_check_ports(), for a command that waits for what is missing. */
void watch_explain_wait(struct watch *w);

#endif
