/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that drops and held share. */
#ifndef RINGTAP_FATES_TABLES_H
#define RINGTAP_FATES_TABLES_H

#include <jansson.h>
#include <stdio.h>

#include "show/sheet.h"
#include "groups.h"
#include "view.h"

/* "ringtap drops  my-app (testpmd, pid 4711), 12.3 s". */
void fates_head(const struct fates_view *v, FILE *f);
/* Packets by protocol with examples, by flow and by size. title: what they are; seconds: since the
 * mark, 0: without rates. 0 or -ENOMEM. */
int groups_print(const struct packet_groups *g, const struct fates_session *s, const char *title,
	double seconds, FILE *f);
/* Sets these lists. */
void groups_json(
	json_t *j, const struct packet_groups *g, const struct fates_session *s, double seconds);
/* Packets by the reason that the application gave, packets[number] of each. Nothing if it gave
 * none. cap: of that application. 0 or -ENOMEM. */
int fates_print_reasons(const uint64_t packets[REASONS], const struct ringtap_capture *cap,
	uint64_t whole, FILE *f);
json_t *fates_reasons_json(const uint64_t packets[REASONS], const struct ringtap_capture *cap);
/* Begins the application's object of both. */
json_t *fates_json(const struct fates_view *v);
/* Port, queue, received packets: a new object, to which the caller adds. */
json_t *fates_queue_json(const struct fates_session *s, const struct ringtap_fate_queue *q);
/* Appends a row: name, packets, and their share in percent. 0 or -ENOMEM. */
int fates_row(struct sheet *t, const char *name, uint64_t packets, uint64_t whole);
/* Names pools with free mbufs that cannot be found, and says how many more there are. */
void fates_print_pools_unread(const struct fates_session *s, FILE *f);

static inline double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

#endif
