/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The applications that a command looks at: attached to as they come, forgotten when they are gone,
 * and a snapshot of each again and again.
 */
#ifndef RINGTAP_CLI_MONITOR_WATCH_H
#define RINGTAP_CLI_MONITOR_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ringtap/monitor.h"
#include "base/util.h"

/* Snapshots are about this far apart, so that counts can be set against the drivers'. */
#define WATCH_STEP_NS (NS_PER_S / 100)

/* What a driver said, and what the application had handed over by then. Drivers are asked twice a
 * second, snapshots are taken at other times: least and most are those of the snapshots before and
 * after. */
struct reading {
	uint64_t ns;          /* since the epoch; 0: none yet */
	uint64_t least, most; /* packets given to TX */
	uint64_t in_hand;     /* of those, at most, on their way to the driver at any time */
	struct ringtap_port_stats port;
};

struct watched {
	char *name, *dir;
	struct ringtap_monitor *mon; /* NULL: not attached */
	int error;                   /* -errno: why not */
	char why[256];
	struct ringtap_app_info info;
	double tsc_hz; /* of the first snapshot: what is converted with it must not go back */
	struct ringtap_snapshot *now;  /* NULL: none yet */
	struct ringtap_snapshot *mark; /* where the interval began; NULL: no interval yet */
	struct reading *from, *to;     /* by port, over the interval; count: ports of now */
	uint32_t reading_count;
	bool ended;                  /* now is its last snapshot */
	uint64_t retry_ns;           /* monotonic; attach again then */
	bool found;                  /* by the scan that goes on */
	bool switching;              /* its collectors, without the lock: mon is in use */
	unsigned asked, asked_every; /* what it was told to switch on */
};

struct watch {
	/* Set by the caller before watch_init(). */
	const char *const *names; /* file-prefixes; they live as long as the watch */
	size_t name_count;        /* 0: all applications */
	unsigned collectors, latency_every;
	/* Those of now; under lock once watch_start() was called. */
	struct watched **list;
	size_t count;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* stop, for the thread */
	pthread_t thread;
	bool started, stop, hurry; /* hurry: there is something to switch */
	int error;                 /* -errno of the last scan */
};

void watch_init(struct watch *w);
/* Attaches to what has come, forgets what is gone. -errno if the folders cannot be read. An
 * application that cannot be attached to stays listed with its error and is tried again. */
int watch_refresh(struct watch *w);
/* Lets a thread of its own do that every second: attaching may take seconds. 0 or -errno. */
int watch_start(struct watch *w);
/* Detaches from all and frees what watch_init() and later calls took. */
void watch_free(struct watch *w);

/* With lock held where watch_start() was called: */

/* A new snapshot of each application. */
void watch_step(struct watch *w);
/* An interval ends, and the next begins, with the snapshot of now. */
void watch_mark(struct watch *w);
/* Snapshots until drivers and kernel have been asked once, so that an interval which begins now
 * knows where they began; a second at most. */
void watch_settle(struct watch *w);
/* Other collectors, now and for those that come. With a thread it is the one that switches, soon:
 * an application that does not answer is waited for without the lock. */
void watch_switch(struct watch *w, unsigned collectors, unsigned latency_every);
/* Applications that show stats. */
size_t watch_attached(const struct watch *w);
/* Prints, as command, why there is none. */
void watch_explain(const struct watch *w, const char *command);

#endif
