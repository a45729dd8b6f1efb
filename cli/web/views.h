/* SPDX-License-Identifier: BSD-3-Clause */
/* The documents of the page: docs/view.md. */
#ifndef RINGTAP_CLI_WEB_VIEWS_H
#define RINGTAP_CLI_WEB_VIEWS_H

#include "apps.h"
#include "web/view.h"

/* Restriction of the page; "": none. */
struct place {
	char app[320], port[SERIES_NAME], thread[SERIES_NAME];
};

/* A document of what is kept, or of the newest step only, which the page adds to it. The caller
 * decrefs. w: for the reasons why something is missing. */
json_t *views_document(const struct apps *all, struct watch *w, const struct place *p, bool newest);

/* Adds the panel that shows the way of packets. */
void pipeline_add(
	struct view *v, const struct app *a, const struct place *p, const struct history *h);

#endif
