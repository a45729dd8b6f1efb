/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap flight extract: packets of incidents that match a filter, as a pcapng file. */
#ifndef RINGTAP_CLI_FLIGHT_EXTRACT_H
#define RINGTAP_CLI_FLIGHT_EXTRACT_H

#include "ringtap/open.h"

#define EXTRACT_MAX 256

struct extract {
	const char *folder;
	const char *names[EXTRACT_MAX]; /* names of incidents in the folder, or paths of them */
	unsigned count;
	const char *filter; /* NULL: all packets */
	enum ringtap_tags tags;
	bool inner;
	const char *output; /* "-": standard output */
};

/* Writes the packets of incidents that match the filter, a section of the file for each. Returns
 * enum status. */
int extract_run(const struct extract *e);

#endif
