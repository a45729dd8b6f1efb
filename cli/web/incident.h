/* SPDX-License-Identifier: BSD-3-Clause */
/* Incidents of the flight recorders that run. */
#ifndef RINGTAP_CLI_WEB_INCIDENT_H
#define RINGTAP_CLI_WEB_INCIDENT_H

#include <microhttpd.h>
#include <stdbool.h>

#include "apps.h"

#define DOWNLOADS_MAX 8 /* pages that are sent at once */

struct view;
struct web;

/* Whether a recorder of the application, which may be NULL, writes to this folder: it answers so.
 */
bool app_has_folder(const struct app *a, const char *folder);
/* Adds the names of the newest ones to a recorder's answer. The folder may be slow, or hang. */
void incident_names(json_t *recorder);
/* Adds the table of the newest ones of an application. */
void incident_table(struct view *v, const struct app *a);
/* Answers a GET with the page of one. */
enum MHD_Result incident_answer(struct web *w, struct MHD_Connection *c);

#endif
