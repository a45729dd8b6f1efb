/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a capture: names, and which of them are kept. */
#ifndef RINGTAP_SINK_FILES_H
#define RINGTAP_SINK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct file {
	char *name;
	uint64_t bytes, packets;
};

struct files {
	struct file *list; /* those that exist, oldest first */
	size_t count;
	uint64_t made; /* in all */
	uint64_t keep; /* remove older ones; 0: keep all */
};

/* dumpcap's name for the n-th file (1…) of a ring buffer begun at when:
 * NAME_00001_YYYYmmddHHMMSS.EXT; time_first: NAME_YYYYmmddHHMMSS_00001.EXT. .zst and .lz4 count
 * with the extension before them. The caller frees; NULL: out of memory. */
char *file_name(const char *path, uint64_t n, time_t when, bool time_first);
/* The name of the part of a capture: NAME_PART.EXT, with _ for each /. The caller frees; NULL: out
 * of memory. */
char *file_name_part(const char *path, const char *part);
/* Where no -w is given: ringtap_APP_YYYYmmddHHMMSS and extension. The caller frees. */
char *file_name_default(const char *app, const char *extension, time_t when);

/* Takes note of a new file, and removes the oldest if there are too many now. name is copied.
 * 0, -ENOMEM; -errno of the removal, after which all goes on. */
int files_add(struct files *f, const char *name);
/* The newest, NULL if there is none. */
struct file *files_last(struct files *f);
void files_free(struct files *f);

#endif
