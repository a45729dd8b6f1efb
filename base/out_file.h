/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is opened before the application is attached to, and written at the end. */
#ifndef RINGTAP_BASE_OUT_FILE_H
#define RINGTAP_BASE_OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct out_file {
	const char *path; /* NULL: none */
	FILE *f;
};

/* 0, or -errno after printing why. Only the user can read the file: packet_file_open(). */
int out_file_open(struct out_file *o, const char *command, const char *path);
/* group_read: the group can read it, too. */
int out_file_open_packets(
	struct out_file *o, const char *command, const char *path, bool group_read);
/* 0, or -EINVAL after printing why: the output, NULL: none, is one of these inputs, which opening
 * it would empty. */
int out_file_check(
	const char *command, const char *path, const char *const *inputs, unsigned count);
/* error: 0, or -errno of writing. Prints what failed, and removes an incomplete file. 0 or
 * -errno. */
int out_file_close(struct out_file *o, const char *command, int error);

#endif
