/* SPDX-License-Identifier: BSD-3-Clause */
/* Which application and which of its ports a target means: APP, APP:PORT, :PORT. */
#ifndef RINGTAP_TARGET_WHICH_APP_H
#define RINGTAP_TARGET_WHICH_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "ringtap/reader.h"

struct nearest;

/* Applications that run the program that a word names. */
struct target_candidates {
	unsigned count;  /* 0: none, or the word is an application's name or process id */
	char names[512]; /* with their process ids */
};

/* The application that a word of len bytes means: its name, its process id, or the name of its
 * program, where one application has that, secondary processes of it aside. Its index; -ENOENT:
 * there is none; -ENOTUNIQ: several run that program, which others has; NULL: not wanted. */
int target_app(const struct ringtap_apps *apps, const char *word, size_t len,
	struct target_candidates *others);
/* The application of APP or APP:PORT, by its name; of :PORT, the only one. *port: NULL for all. As
 * target_app(). */
int target_word(const struct ringtap_apps *apps, const char *word, const char **port,
	struct target_candidates *others);
/* Advice about a word that names no application: "did you mean 'NAME'?", or see the list. Lives as
 * long as n. */
const char *target_advice(struct nearest *n, const struct ringtap_apps *apps, const char *word);
/* Says, as command, why target_app() has found none. */
void print_no_app(const char *command, const struct ringtap_apps *apps, const char *word, int error,
	const struct target_candidates *others);

/* Says, as command, that no application runs, and which were skipped: those of other users. todo:
 * what to do before "run ringtap as its user or as root". Returns -ENOENT. */
int print_no_apps(const char *command, const struct ringtap_apps *apps, const char *todo);

/* Finds what APP, APP:PORT or :PORT means. PORT alone is one, where port_alone allows that, and
 * where it has a colon of its own, as 0000:03:00.0. text NULL, and :PORT: the only application that
 * has such a port. *port becomes NULL for all ports. 0, or -errno after printing why, as command.
 */
int target_find(const char *command, const struct ringtap_apps *apps, const char *text,
	bool port_alone, int *app, const char **port);

/* Splits APP:PORT or APP, of an application that is known by its name. Another name: *app is -1,
 * and all of spec the port. */
void target_split(
	const char *spec, const char *const *apps, size_t count, int *app, const char **port);

/* Whether a port is the one given by name or number. */
bool target_port_matches(const char *name, const char *device, uint32_t id, const char *port);

/* The ports of an application, for ringtap_list_free(). NULL: it does not answer. */
struct ringtap_list *target_ports(const char *dir);
bool target_has_port(const struct ringtap_list *list, const char *port);

/* The folder of an address, which may have the number of an application or the id of a secondary
 * process behind it. 0 or -errno. */
int address_stat(const char *dir, struct stat *st);
int address_open(const char *dir, int flags);

/* Says, as command, why attaching to an application failed, and what to do. why: what the library
 * says, NULL or "": nothing. */
void print_not_attached(const char *command, const char *app, int error, const char *why);
/* The process id of the application with this address, which is one of the list; 0: unknown. */
uint32_t target_pid(const struct ringtap_apps *apps, const char *dir);
/* Says, as command, that an application has no such port, and which ones it has. pid: its process;
 * 0: unknown. list: its ports, NULL if it does not answer. */
void print_no_port(const char *command, const char *app, uint32_t pid, const char *port,
	const struct ringtap_list *list);

#endif
