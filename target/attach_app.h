/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets the probe into a running application. */
#ifndef RINGTAP_TARGET_ATTACH_APP_H
#define RINGTAP_TARGET_ATTACH_APP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/command.h"
#include "ringtap/reader.h"

struct attach_target {
	struct ringtap_apps *apps;
	const char *name,
		*dir; /* live as long as apps; dir NULL: its runtime folder is not visible */
	pid_t pid;
	char number[16];
};

/* Finds the application that a name, a program's name or a process id means. 0, or -ENOENT after
 * printing why, as command. Free with attach_target_free() in any case. */
int attach_target_find(struct attach_target *t, const char *command, const char *word);
/* The same without a message. -ENOENT: there is none; -ENOTUNIQ: several run that program. */
int attach_target_look(struct attach_target *t, const char *word);
void attach_target_free(struct attach_target *t);

/* Loads the probe where it is missing, and wakes it where it was detached. 0: it answers now; 1: it
 * did before; -errno after printing why. An application that was not listed may be afterwards: t is
 * updated. */
int attach_target(struct attach_target *t, const char *command);

/* The option --attach, a bool of the command's context. */
#define ATTACH_OPTION(type, field)                                                      \
	{                                                                               \
		OPTION_TO(type, field), OPTION_FLAG, 0, "attach", NULL, NULL, 0, 0,     \
			"Load the probe into an application that runs without it; see " \
			"ringtap-attach(1). Without this option, ask on a terminal"     \
	}

/* Before a command uses the i-th application: loads the probe where it is missing, if that is
 * agreed on, or by the user at a terminal. 0, also if it stays missing; -errno after printing why.
 */
int attach_missing(const char *command, const struct ringtap_apps *apps, size_t i, bool agreed);

/* Calls f for each process that runs a DPDK and is not in the list, as it has neither telemetry nor
 * the probe. program may hold any bytes. */
void attach_each_unlisted(const struct ringtap_apps *apps,
	void (*f)(uint32_t pid, const char *program, void *arg), void *arg);

#endif
