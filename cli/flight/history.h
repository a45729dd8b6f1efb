/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of the last minutes. */
#ifndef RINGTAP_CLI_FLIGHT_HISTORY_H
#define RINGTAP_CLI_FLIGHT_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "trigger.h"

struct flight;

/* Between two snapshots of the history. */
struct span history_span(const struct flight *f, unsigned first, unsigned last);
/* Between two snapshots of one application. */
struct span history_between(const struct flight *f, const struct ringtap_snapshot *from,
	const struct ringtap_snapshot *to);
/* Takes a snapshot, which becomes f->last; the one before it, or NULL, is valid until
 * history_keep(). *error: -EPIPE if the application has ended. False: there is no snapshot. */
bool history_read(struct flight *f, struct ringtap_snapshot **before, int *error);
/* Keeps the last snapshot if a second has passed, and returns whether it does. */
bool history_keep(struct flight *f, struct ringtap_snapshot *before);
/* Whether a snapshot is kept that was taken at this time or later. */
bool history_reaches(const struct flight *f, uint64_t ns);
/* Keeps the last snapshot beside those of each second: intervals, which begin and end with these,
 * leave out nothing. */
void history_keep_last(struct flight *f);
void history_free(struct flight *f);
/* The newest interval of the history that is not shorter than ns, which is not 0. False: there is
 * none yet. */
bool history_last(const struct flight *f, uint64_t ns, struct span *s);
/* The snapshots around an incident: indices into history. False: fewer than two. */
bool history_around(
	const struct flight *f, uint64_t from_ns, uint64_t to_ns, unsigned *first, unsigned *last);
/* Judges an interval. The caller frees; NULL: no interval, or no memory. */
struct diagnosis *history_judge(
	struct flight *f, unsigned first, unsigned last, struct examination *e);

#endif
