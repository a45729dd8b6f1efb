/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions of the page that --allow-actions permits, each by POST. */
#ifndef RINGTAP_CLI_WEB_ACTIONS_H
#define RINGTAP_CLI_WEB_ACTIONS_H

#include <microhttpd.h>
#include <stdbool.h>

#include <jansson.h>

struct web;

/* Answers a POST that has the token; path: without a slash. */
enum MHD_Result actions_answer(struct web *w, struct MHD_Connection *c, const char *path);
/* Whether a path is one of an action. */
bool actions_are(const char *path);
/* For struct serve_options' ended: a client of a recording may have gone. */
void actions_ended(void *web, struct MHD_Connection *c);
/* Once a second, with the lock: recordings begin and end. */
void actions_step(struct web *w);
/* Ends the one that runs; its connection is resumed. */
void actions_end(struct web *w);
/* Adds what is on, what it costs, and what may be done to a document. */
void actions_describe(const struct web *w, json_t *document, const char *app);

#endif
