/* SPDX-License-Identifier: BSD-3-Clause */
/* Which application and which of its ports [APP:]PORT or APP means. */
#ifndef RINGTAP_TARGET_WHICH_APP_H
#define RINGTAP_TARGET_WHICH_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "ringtap/reader.h"

/* Splits [APP:]PORT or APP. If what stands before the first colon is one of the applications, *app
 * becomes its index; else -1, and all of spec is the port: names such as 0000:03:00.0 have colons
 * of their own. *port becomes NULL for all ports. */
void target_split(
	const char *spec, const char *const *apps, size_t count, int *app, const char **port);

/* Whether a port is the one given by name or number. */
bool target_port_matches(const char *name, const char *device, uint32_t id, const char *port);

/* The ports of an application, for ringtap_list_free(). NULL: it does not answer. */
struct ringtap_list *target_ports(const char *dir);
bool target_has_port(const struct ringtap_list *list, const char *port);

/* Prints, as command, that several applications have the name that a word begins with, up to its
 * end or a colon, and theirs: "NAME~PID". False: none has. */
bool print_namesakes(const char *command, const struct ringtap_apps *apps, const char *word);

/* What to do about a word that names no application: "did you mean 'NAME'?", or see the list. */
const char *app_advice(struct nearest *n, const struct ringtap_apps *apps, const char *word);

/* The application that is meant where none is named: the one that has such a port (NULL: the
 * probe). -1 after printing why there is none. command is what stands between "ringtap"
 * and the application on a command line. */
int targets_only_app(const char *command, const struct ringtap_apps *apps, const char *const *names,
	const char *port);

/* The folder of an address, which may have the number of an application or the id of a secondary
 * process behind it. 0 or -errno. */
int address_stat(const char *dir, struct stat *st);
int address_open(const char *dir, int flags);

/* Says, as command, why attaching to an application failed, and what to do. why: what the library
 * says, NULL or "": nothing. */
void print_not_attached(const char *command, const char *app, int error, const char *why);
/* Says, as command, that an application has no such port, and which ones it has. list: those, NULL
 * if it does not answer. */
void print_no_port(
	const char *command, const char *app, const char *port, const struct ringtap_list *list);

#endif
