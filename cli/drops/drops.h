/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap drops: the packets that an application received and did not offer to any port.
 *
 *   session (records, counts) -> filter -> kinds -> report (text), json
 *                                       -> file (pcapng)
 */
#ifndef RINGTAP_CLI_DROPS_DROPS_H
#define RINGTAP_CLI_DROPS_DROPS_H

#include "fates/kinds.h"
#include "fates/tables.h"
#include "fates/view.h"
#include "packet/filter.h"

struct dropped_file; /* file.c */

struct drops {
	struct fates_view view; /* first, for fates_set() */
	const char *expression, *path;
	struct filter filter;
	struct kinds kinds;
	struct dropped_file *file; /* NULL: none */
	uint64_t taken;            /* packets of the capture, before the filter */
	uint64_t at_end;           /* of kinds: found in their pools at the end */
	int error;                 /* -errno of writing the file, reported once */
	bool final;
};

/* Sums over the requested ports. */
struct drops_sum {
	uint64_t received, offered, not_offered, open, unknown, inferred, unseen, stopped;
};

/* What the counts of all queues add up to. */
void drops_add_up(const struct drops *d, struct drops_sum *out);
/* Whether packets that ringtap shows as not offered may have been copied. */
bool drops_is_switch(const struct drops *d);

/* ---- report.c, json.c: as struct fates_view has them */

int drops_text(void *ctx, FILE *f);
json_t *drops_json(void *ctx);

/* What is certain about a port between the first and the last reading of its driver; NAN: unknown.
 */
struct driver_counts drops_driver(const struct drops *d, uint32_t interface);
/* It was in use, and is stopped now. */
bool drops_port_stopped(const struct drops *d, uint32_t interface);

/* ---- file.c: the packets as pcapng, with the time of their reception. All print what is wrong. */

/* Opens the file, which stays as it is until there is something to write. 0 or -errno. */
int dropped_open(struct dropped_file **out, const char *path);
/* Adds a packet; at_end: nothing had been received into its mbuf when the capture ended. */
int dropped_put(
	struct dropped_file *f, const struct fates_session *s, const struct sample *p, bool at_end);
/* What was added is in the file from then on. */
int dropped_flush(struct dropped_file *f);
/* Frees it, too. error: what is there is kept, in whole blocks. */
int dropped_close(struct dropped_file *f, const struct fates_session *s);

#endif
