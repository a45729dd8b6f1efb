/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK ports in the list of devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alias.h"
#include "handle.h"
#include "reader/conn.h"
#include "reader/telemetry.h"

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
	const struct ringtap_app_info *info, const struct ringtap_port_info *ports, size_t count)
{
	char name[3 * RINGTAP_NAME_LEN], text[4 * RINGTAP_NAME_LEN], alias[RT_ALIAS_LEN];
	bool ok = true;

	for (size_t i = 0; i < count && ok; i++) {
		snprintf(name, sizeof(name), NAME_PREFIX "%s:%s", app, ports[i].name);
		snprintf(text, sizeof(text), "DPDK port %u of %s (%s), alias %s", ports[i].port_id,
			info->program, ports[i].driver,
			rt_alias_make(alias, number, ports[i].port_id));
		ok = add(end, name, text, ports[i].link_up);
	}
	snprintf(name, sizeof(name), NAME_PREFIX "%s", app);
	snprintf(text, sizeof(text), "All DPDK ports of %s, alias %s", info->program,
		rt_alias_make(alias, number, RT_ALIAS_ALL_PORTS));
	return ok && (count < 2 || add(end, name, text, true));
}

/* Leaves out applications without a probe, and those that may not be accessed. False: no memory. */
static bool add_app(pcap_if_t ***end, const struct ringtap_apps *apps, size_t number)
{
	struct ringtap_app_info info = {.size = sizeof(info)};
	struct ringtap_session_info *sessions = NULL;
	struct ringtap_port_info *ports = NULL;
	size_t port_count = 0, session_count = 0;
	struct ringtap_conn *conn;
	char err[256];
	bool ok = true;

	if (ringtap_conn_open(&conn, ringtap_apps_dir(apps, number), err, sizeof(err)))
		return true;
	if (!ringtap_conn_app(conn, &info) &&
		!ringtap_conn_list(conn, &ports, &port_count, &sessions, &session_count))
		ok = add_ports(
			end, ringtap_apps_name(apps, number), number, &info, ports, port_count);
	free(ports);
	free(sessions);
	ringtap_conn_close(conn);
	return ok;
}

static void add_apps(pcap_if_t **end, const struct ringtap_apps *apps)
{
	int answer_ms = rt_answer_ms, telemetry_ms = rt_telemetry_ms;
	bool ok = true;

	rt_answer_ms = rt_telemetry_ms = LIST_MS;
	while (*end)
		end = &(*end)->next;
	for (size_t i = 0; i < ringtap_apps_count(apps) && ok; i++)
		ok = add_app(&end, apps, i);
	rt_answer_ms = answer_ms;
	rt_telemetry_ms = telemetry_ms;
}

/* DPDK ports are listed also where the system's interfaces cannot be. */
EXPORT int pcap_findalldevs(pcap_if_t **list, char *err)
{
	struct ringtap_apps *apps;
	int ret = real()->pcap_findalldevs(list, err);

	if (ringtap_apps_find(&apps))
		return ret;
	if (ret)
		*list = NULL;
	add_apps(list, apps);
	ringtap_apps_free(apps);
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
