/* SPDX-License-Identifier: BSD-3-Clause */
/* --annotate: a copy of recordings with a comment on each received packet that was not offered, is
 * open or is unknown. Programs that skip blocks of fates show comments. */
#ifndef RINGTAP_CLI_EXPLAIN_ANNOTATE_H
#define RINGTAP_CLI_EXPLAIN_ANNOTATE_H

#include <stdio.h>

#include "join.h"

struct annotation {
	uint64_t frame;     /* number over all files */
	uint64_t after_ns;  /* from its reception until the fate was noticed */
	const char *reason; /* the text of the join; NULL: none */
	enum fate fate;
};

struct annotations {
	struct annotation *list;
	size_t count, room;
	uint64_t memory; /* bytes, at most */
	int error;       /* -ENOMEM, -E2BIG: no room in memory */
};

/* A join.tell; ctx: struct annotations. */
void annotate_note(void *ctx, const struct outcome *o);
void annotate_free(struct annotations *a);

/* Reads the files again. 0 or -errno after printing what is wrong with a file, -EIO: f could not be
 * written. A file that is damaged is copied up to there. */
int annotate_write(struct annotations *a, const char *const *files, unsigned count, FILE *f);

#endif
