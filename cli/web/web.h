/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap web: the server, and what it works with. */
#ifndef RINGTAP_CLI_WEB_WEB_H
#define RINGTAP_CLI_WEB_WEB_H

#include "recorder/answers.h"
#include "serve/serve.h"
#include "streams.h"
#include "token.h"

#define WEB_LINGER_NS (120 * NS_PER_S) /* after the last client */

struct web_options {
	struct watch watch; /* first, for watch_name(); never started: watches are copies of it */
	struct serve_options serve;
	const char *token_file;
	uint64_t history_ns; /* 0: only while there are clients */
	uint64_t duration_ns;
};

struct web {
	struct web_options *options;
	struct serve serve;
	struct token token;
	struct streams streams;
	char *page; /* HTML */
	size_t page_len;
	/* With the lock of streams. */
	struct apps apps;
	struct watch watch;
	bool watching; /* watch and apps are in use */
};

/* Serves; url: what the user opens. 0, or -errno after a message. options live as long as w. */
int web_start(struct web *w, struct web_options *options, char *url, size_t size);
/* A step: takes snapshots if there is a reason to, and ends slow clients. Call it once a second. */
void web_step(struct web *w);
void web_stop(struct web *w);

#endif
