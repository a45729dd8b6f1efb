/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap web: the server, and what it works with. */
#ifndef RINGTAP_CLI_WEB_WEB_H
#define RINGTAP_CLI_WEB_WEB_H

#include "actions.h"
#include "aside.h"
#include "base/child.h"
#include "recorder/answers.h"
#include "serve/serve.h"
#include "streams.h"
#include "token.h"

#define WEB_LINGER_NS (120 * NS_PER_S) /* after the last client */

struct web_options {
	struct watch watch; /* first, for watch_name(); never started: watches are copies of it */
	struct serve_options serve;
	const char *token_file;
	bool allow_actions;
	uint32_t flows;       /* rows of their table; 0: off at the beginning */
	const char *recorder; /* the program ringtap; tests have another one */
	uint64_t history_ns;  /* 0: only while there are clients */
	uint64_t duration_ns;
};

/* ringtap record, drops or held, of which a client waits for the end. */
struct recording {
	const char *command;
	struct MHD_Connection *connection; /* NULL: there is none */
	uint32_t pid;                      /* application */
	unsigned seconds;
	char *filter; /* NULL: none */
	struct child child;
	int failed; /* -errno: it could not be started */
	bool started, done;
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
	struct recorder_answers *recorders;
	struct recording recording;
	uint64_t triggered_ns; /* CLOCK_MONOTONIC; the last incident that was requested */
	unsigned downloads;    /* pages of incidents that are being sent */
	bool watching;         /* watch and apps are in use */
	bool flows;            /* apps.flows is wanted */
};

/* Serves; url: what the user opens. 0, or -errno after a message. options live as long as w. */
int web_start(struct web *w, struct web_options *options, char *url, size_t size);
/* A step: takes snapshots if there is a reason to, and ends slow clients. Call it once a second. */
void web_step(struct web *w);
void web_stop(struct web *w);
/* Answers a request after work with a folder: see aside_suspend(). */
enum MHD_Result web_aside(struct web *w, struct MHD_Connection *c, const char *folder,
	const char *text, void (*work)(struct aside *a));
/* Begins or ends the capture of flows, with the lock of streams. */
void web_flows(struct web *w, bool on);

#endif
