/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that were not offered, as a pcapng file with the time of their reception. All functions
 * print what is wrong. */
#ifndef RINGTAP_CLI_DROPS_DROPPED_FILE_H
#define RINGTAP_CLI_DROPS_DROPPED_FILE_H

#include "fates/groups.h"
#include "fates/session.h"

struct dropped_file;

/* Opens the file, which stays as it is until there is something to write. 0 or -errno. */
int dropped_open(struct dropped_file **out, const char *path);
/* Adds a packet; at_end: nothing had been received into its mbuf when the capture ended. */
int dropped_put(
	struct dropped_file *f, const struct fates_session *s, const struct sample *p, bool at_end);
/* Writes what was added to the file. */
int dropped_flush(struct dropped_file *f);
/* Closes and frees f. After an error the file keeps all complete blocks. */
int dropped_close(struct dropped_file *f, const struct fates_session *s);

#endif
