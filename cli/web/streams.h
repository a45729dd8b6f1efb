/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that get a document and its updates (Server-Sent Events). All of one place get the same
 * bytes, which are made once; one that is slow misses updates, and gets the document again. */
#ifndef RINGTAP_CLI_WEB_STREAMS_H
#define RINGTAP_CLI_WEB_STREAMS_H

#include <microhttpd.h>
#include <pthread.h>

#include "views.h"

#define STREAMS_MAX 32

struct streams {
	pthread_mutex_t lock; /* also of what documents are made of */
	/* Makes a document or an update: of views_document(). */
	json_t *(*make)(void *ctx, const struct place *p, bool newest);
	void *ctx;
	struct stream *list[STREAMS_MAX];
	unsigned count;
	struct stream_page *pages; /* places that have clients */
	uint64_t round;
	uint64_t made;     /* texts, since the beginning */
	uint64_t empty_ns; /* CLOCK_MONOTONIC, since when there are no clients */
	bool ending;
};

void streams_init(struct streams *s);
/* A response for a client, which gets the document at once. NULL: no memory, or too many clients,
 * if *many. */
struct MHD_Response *streams_open(
	struct streams *s, struct MHD_Connection *c, const struct place *p, bool *many);
unsigned streams_count(struct streams *s);
/* All clients get a document next: times are relative to another origin. */
void streams_restart(struct streams *s);
/* Makes an update of each place and wakes its clients; the lock is taken. */
void streams_update(struct streams *s);
/* Ends all of them: before the server stops. */
void streams_end(struct streams *s);

#endif
