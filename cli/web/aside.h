/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work with a folder of incidents, by a thread of its own: the file system may hang (NFS, FUSE),
 * and then the work takes for ever. No request and no other folder waits for it.
 */
#ifndef RINGTAP_CLI_WEB_ASIDE_H
#define RINGTAP_CLI_WEB_ASIDE_H

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/util.h"

#define ASIDE_WAIT_NS (2 * NS_PER_S) /* a request waits so long */

struct aside {
	/* Set by the caller; copies. */
	char *folder, *text;
	/* Results of work(), freed with the rest. */
	ssize_t result;
	char *data;
	json_t *names;
	/* The rest is of aside.c. */
	struct aside *next;
	void (*work)(struct aside *a);
	pthread_cond_t done;
	struct MHD_Connection *connection; /* that waits; NULL: none */
	uint64_t until_ns;
	bool ended, resumed;
	bool left; /* nothing waits for it: its thread frees it */
};

/* Suspends the connection, and starts work(); the server then calls for the request again, see
 * aside_take(). text may be NULL. 0; -EBUSY: work with this folder has not ended in time, or much
 * is under way; -errno. */
int aside_suspend(struct MHD_Connection *c, const char *folder, const char *text,
	void (*work)(struct aside *a));
/* True: the request was suspended. *out: the work, which the caller frees; NULL: it takes too long.
 */
bool aside_take(struct MHD_Connection *c, struct aside **out);
/* The same without a request, waiting ns at most. NULL: it takes too long. The caller frees. */
struct aside *aside_run(const char *folder, void (*work)(struct aside *a), uint64_t ns);
void aside_free(struct aside *a);

/* Answers a request whose work takes too long. */
enum MHD_Result aside_refuse(struct MHD_Connection *c);

/* Ends waits that have been too long, or all. */
void aside_step(uint64_t now);
#define ASIDE_ALL UINT64_MAX

#endif
