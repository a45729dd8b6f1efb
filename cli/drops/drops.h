/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap drops: the packets that an application received and did not offer to any port.
 *
 *   session (records, counts) -> filter -> groups -> report (text), json
 *                                       -> file (pcapng)
 */
#ifndef RINGTAP_CLI_DROPS_DROPS_H
#define RINGTAP_CLI_DROPS_DROPS_H

#include "counted/counted.h"
#include "fates/groups.h"
#include "fates/tables.h"
#include "fates/view.h"
#include "packet/filter.h"

struct dropped_file;

struct drops {
	struct fates_view view; /* first, for the rows of fates/view.h */
	const char *expression, *path;
	enum ringtap_tags tags;
	bool inner; /* also below tunnels */
	struct filter filter;
	struct packet_groups groups;
	struct dropped_file *file; /* NULL: none */
	uint64_t taken;            /* packets of the capture, before the filter */
	uint64_t at_end;           /* packets in groups that were found in their pools at the end */
	struct counted counted;    /* by the application itself */
	int error;                 /* -errno of writing the file, reported once */
	bool final;
};

/* Sums over the requested ports, refused over all: what was received may be refused by any. */
struct drops_sum {
	uint64_t received, offered, not_offered, open, unknown, inferred, unseen, stopped;
	double missed, no_mbuf, refused; /* NAN: unknown at all of them */
};

/* Sums of the counts of all queues. */
void drops_add_up(const struct drops *d, struct drops_sum *out);
/* Numbers that the application's own counters are compared with. */
struct counted_fates drops_fates(const struct drops *d, const struct drops_sum *sum);
/* Whether packets that ringtap shows as not offered may have been copied. */
bool drops_is_switch(const struct drops *d);

/* ---- report.c, json.c: as struct fates_view has them */

int drops_text(void *ctx, FILE *f);
json_t *drops_json(void *ctx);

/* Certain counts of a port between the first and the last reading of its driver; NAN: unknown.
 */
struct driver_counts drops_driver(const struct drops *d, uint32_t interface);
/* It was in use, and is stopped now. */
bool drops_port_stopped(const struct drops *d, uint32_t interface);

#endif
