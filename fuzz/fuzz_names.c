/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer of a switch's database, which belongs to the application: its names go to terminals.
 */
#include <stdlib.h>
#include <string.h>

#include "reader/conn/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct rt_switch_port *p)
{
	if (strnlen(p->name, sizeof(p->name)) == sizeof(p->name) ||
		strnlen(p->device, sizeof(p->device)) == sizeof(p->device) || p->port_id < -1 ||
		p->port_id > UINT16_MAX)
		abort();
	for (const char *c = p->name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *answer = json_loadb((const char *)data, size, 0, NULL);
	struct rt_names names = {0};

	if (!answer)
		return 0;
	rt_names_take(&names, answer);
	json_decref(answer);
	if (names.count > RT_SWITCH_PORTS_MAX)
		abort();
	for (size_t i = 0; i < names.count; i++)
		check(&names.list[i]);
	rt_names_free(&names);
	return 0;
}
