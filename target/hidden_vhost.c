/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>

#include "common/proto.h"
#include "hidden_vhost.h"
#include "inject/idle.h"
#include "inject/process.h"

bool hidden_vhost_is_port(const char *driver)
{
	return !strcmp(driver, RT_VHOST_DRIVER) || !strcmp(driver, "net_vhost");
}

const char *hidden_vhost(uint32_t pid, const struct ringtap_list *list)
{
	struct rt_process p;
	bool shared;

	for (size_t i = 0; list && i < list->port_count; i++)
		if (hidden_vhost_is_port(ringtap_list_port(list, i)->driver))
			return NULL;
	/* The library starts the thread for the first socket, so that a program that only contains
	 * it has none. */
	if (!pid || !rt_has_vhost((pid_t)pid) || rt_process_open(&p, (pid_t)pid))
		return NULL;
	shared = rt_process_find(&p, "librte_vhost.so");
	rt_process_close(&p);
	return shared ? NULL
		      : "its vhost ports are not visible, as the program contains DPDK's vhost "
			"library: only calls between files can be diverted";
}
