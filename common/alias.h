/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Aliases of ports for programs that take no longer names than the kernel's interfaces have: rtA is
 * all ports of the application A, rtApP its port P. A is the application's place in the list of
 * ringtap_apps_find(), from 0, P the number that the port has in the application.
 */
#ifndef RINGTAP_COMMON_ALIAS_H
#define RINGTAP_COMMON_ALIAS_H

#include <stdbool.h>
#include <stddef.h>

#define RT_ALIAS_LEN       32
#define RT_ALIAS_ALL_PORTS (-1)

/* port: a number or RT_ALIAS_ALL_PORTS. Returns alias. */
char *rt_alias_make(char alias[RT_ALIAS_LEN], size_t app, int port);
/* False: name is not an alias; app and port are undefined then. Keeps errno. */
bool rt_alias_parse(const char *name, size_t *app, int *port);

#endif
