/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/foreign.h"
#include "counted/past.h"
#include "incident.h"

#define PACKETS  "packets.pcapng" /* names of ringtap flight */
#define INCIDENT "incident.json"
#define MOST     (1u << 20)

bool incident_counted(const char *packets, struct counted *c, json_t **document)
{
	const char *name = strrchr(packets, '/') ? strrchr(packets, '/') + 1 : packets;
	char path[PATH_MAX], *text = NULL;
	ssize_t n = -1;

	*document = NULL;
	if (!strcmp(name, PACKETS) && snprintf(path, sizeof(path), "%.*s" INCIDENT,
					      (int)(name - packets), packets) < (int)sizeof(path))
		n = rt_foreign_read(AT_FDCWD, path, O_NOFOLLOW, MOST, &text);
	if (n > 0)
		*document = json_loadb(text, (size_t)n, 0, NULL);
	free(text);
	return counted_from_json(c, json_object_get(*document, "counted_by_application"));
}
