/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of an incident's file: packets by interface and over time, and flows. */
#ifndef RINGTAP_CLI_FLIGHT_FILE_COUNTS_H
#define RINGTAP_CLI_FLIGHT_FILE_COUNTS_H

#include <stddef.h>

struct incident;

/* Counts what is in the file, and adds the statistics to its end. 0 or -errno. */
int file_count(struct incident *i);
/* Adds a block to its end. 0 or -errno: the file ends with the block before. */
int file_append(struct incident *i, int fd, const void *data, size_t len);

#endif
