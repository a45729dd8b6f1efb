/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of ports for programs that take no longer ones than the kernel's. */
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

char *alias_make(char alias[ALIAS_LEN], size_t app, int port)
{
	int len = snprintf(alias, ALIAS_LEN, "rt%zu", app);

	if (port != ALIAS_ALL_PORTS)
		snprintf(alias + len, (size_t)(ALIAS_LEN - len), "p%d", port);
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

bool alias_parse(const char *device, size_t *app, int *port)
{
	unsigned long number;
	int error = errno;
	bool ok;

	if (strncmp(device, "rt", 2) != 0)
		return false;
	device += 2;
	*port = ALIAS_ALL_PORTS;
	ok = parse_number(&device, SIZE_MAX, &number);
	*app = number;
	if (ok && *device == 'p') {
		device++;
		ok = parse_number(&device, UINT16_MAX, &number);
		*port = (int)number;
	}
	errno = error;
	return ok && !*device;
}

bool name_is_ours(const char *device)
{
	size_t app;
	int port;

	if (!device)
		return false;
	if (!strncmp(device, NAME_PREFIX, sizeof(NAME_PREFIX) - 1))
		return true;
	return alias_parse(device, &app, &port) && !if_nametoindex(device);
}
