/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets the probe into a running application. */
#ifndef RINGTAP_CLI_ATTACH_APP_H
#define RINGTAP_CLI_ATTACH_APP_H

#include <stdbool.h>
#include <sys/types.h>

#include "ringtap/reader.h"

struct attach_target {
	struct ringtap_apps *apps;
	const char *name, *dir; /* live as long as apps; dir NULL: its runtime folder is not visible */
	pid_t pid;
	char number[16];
};

/* Finds the application that a name or a process id means. 0, or -ENOENT after printing why, as
 * command. Free with attach_target_free() in any case. */
int attach_target_find(struct attach_target *t, const char *command, const char *word);
void attach_target_free(struct attach_target *t);

/* Loads the probe where it is missing, and wakes it where it was detached. 0: it answers now; 1: it
 * did before; -errno after printing why. */
int attach_target(const struct attach_target *t, const char *command);

#endif
