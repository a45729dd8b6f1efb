/* SPDX-License-Identifier: BSD-3-Clause */
/* One HTML file with the page of web/ and a document, which needs nothing else. */
#ifndef RINGTAP_WEB_PAGE_H
#define RINGTAP_WEB_PAGE_H

#include <jansson.h>
#include <stdio.h>

/* The version of documents that the page draws: docs/view.md. */
#define VIEW_VERSION 1

/* Writes the page of a document, and frees the document. 0 or -errno. */
int web_page_write(json_t *document, FILE *f);

/* Writes the page that gets its documents from the server that it is served by. 0 or -errno. */
int web_page_write_live(FILE *f);

#endif
