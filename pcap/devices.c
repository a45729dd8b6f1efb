/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK ports in the list of devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alias.h"
#include "handle.h"

/* For each answer of an application. The applications are queried in turn, and one may be stopped
 * in a debugger. */
#define LIST_MS 400

/* Adds a device behind *end. libpcap's pcap_freealldevs() calls free(). */
static bool add(pcap_if_t ***end, const char *name, const char *description, bool up)
{
	pcap_if_t *d = calloc(1, sizeof(*d));

	if (!d || !(d->name = strdup(name)) || !(d->description = strdup(description))) {
		if (d)
			free(d->name);
		free(d);
		return false;
	}
	d->flags =
		PCAP_IF_UP | PCAP_IF_RUNNING |
		(up ? PCAP_IF_CONNECTION_STATUS_CONNECTED : PCAP_IF_CONNECTION_STATUS_DISCONNECTED);
	**end = d;
	*end = &d->next;
	return true;
}

static bool add_ports(pcap_if_t ***end, const char *app, size_t number,
	const struct ringtap_app_info *info, const struct ringtap_list *list)
{
	char name[3 * RINGTAP_NAME_LEN], text[4 * RINGTAP_NAME_LEN], alias[RT_ALIAS_LEN];
	bool ok = true;

	for (size_t i = 0; i < list->port_count && ok; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(list, i);

		snprintf(name, sizeof(name), NAME_PREFIX "%s:%s", app, p->name);
		snprintf(text, sizeof(text), "DPDK port %u of %s (%s), alias %s", p->port_id,
			info->program, p->driver, rt_alias_make(alias, number, p->port_id));
		ok = add(end, name, text, p->link_up);
	}
	snprintf(name, sizeof(name), NAME_PREFIX "%s", app);
	snprintf(text, sizeof(text), "All DPDK ports of %s, alias %s", info->program,
		rt_alias_make(alias, number, RT_ALIAS_ALL_PORTS));
	return ok && (list->port_count < 2 || add(end, name, text, true));
}

/* Leaves out applications without a probe, and those that may not be accessed. False: no memory. */
static bool add_app(pcap_if_t ***end, const struct ringtap_apps *apps, size_t number)
{
	struct ringtap_app_info info = {.size = sizeof(info)};
	const struct ringtap_conn_options opts = {.size = sizeof(opts), .timeout_ms = LIST_MS};
	struct ringtap_list *list = NULL;
	struct ringtap_conn *conn;
	char err[256];
	bool ok = true;

	if (ringtap_conn_open(&conn, ringtap_apps_dir(apps, number), &opts, err, sizeof(err)))
		return true;
	if (!ringtap_conn_app(conn, &info) && !ringtap_conn_list(conn, &list))
		ok = add_ports(end, ringtap_apps_name(apps, number), number, &info, list);
	ringtap_list_free(list);
	ringtap_conn_close(conn);
	return ok;
}

void devices_add(pcap_if_t **end)
{
	struct ringtap_apps *apps;
	bool ok = true;

	if (ringtap_apps_find(&apps))
		return;
	while (*end)
		end = &(*end)->next;
	for (size_t i = 0; i < ringtap_apps_count(apps) && ok; i++)
		ok = add_app(&end, apps, i);
	ringtap_apps_free(apps);
}

/* DPDK ports are listed also where the system's interfaces cannot be. */
EXPORT int pcap_findalldevs(pcap_if_t **list, char *err)
{
	int ret = real()->pcap_findalldevs(list, err);

	if (ret)
		*list = NULL;
	devices_add(list);
	return *list ? 0 : ret;
}

/* No address, as for libpcap's devices that are not network interfaces, such as "any". */
EXPORT int pcap_lookupnet(const char *device, bpf_u_int32 *net, bpf_u_int32 *mask, char *err)
{
	if (!name_is_ours(device))
		return real()->pcap_lookupnet(device, net, mask, err);
	*net = *mask = 0;
	return 0;
}
