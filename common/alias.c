/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alias.h"

char *rt_alias_make(char alias[RT_ALIAS_LEN], size_t app, int port)
{
	int len = snprintf(alias, RT_ALIAS_LEN, "rt%zu", app);

	if (port != RT_ALIAS_ALL_PORTS)
		snprintf(alias + len, (size_t)(RT_ALIAS_LEN - len), "p%d", port);
	return alias;
}

/* Decimal digits without a sign or leading zeros. */
static bool parse_number(const char **text, unsigned long max, unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)**text) ||
		(**text == '0' && isdigit((unsigned char)(*text)[1])))
		return false;
	errno = 0;
	*number = strtoul(*text, &end, 10);
	*text = end;
	return !errno && *number <= max;
}

bool rt_alias_parse(const char *name, size_t *app, int *port)
{
	unsigned long number;
	int error = errno;
	bool ok;

	if (strncmp(name, "rt", 2) != 0)
		return false;
	name += 2;
	*port = RT_ALIAS_ALL_PORTS;
	ok = parse_number(&name, SIZE_MAX, &number);
	*app = number;
	if (ok && *name == 'p') {
		name++;
		ok = parse_number(&name, UINT16_MAX, &number);
		*port = (int)number;
	}
	errno = error;
	return ok && !*name;
}
