/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Port names of Open vSwitch. For each port of type dpdk, its database (RFC 7047,
 * vswitchd.conf.db(5)) has the name, the number of the ethdev (status:port_no, when the port is up)
 * and the EAL device (options:dpdk-devargs); for each vhost-user port, the path of its socket
 * (options:vhost-server-path where the switch is the client; else status:socket, when a guest is
 * connected), by which the probe names such ports. The path of the database's socket is in the
 * switch's command line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <jansson.h>

#include "common/ipc.h"
#include "common/now.h"
#include "common/peer_json.h"
#include "conn.h"
#include "names.h"
#include "reader/tunables.h"

#define PROGRAM  "ovs-vswitchd"
#define FRESH_NS 100000000ull
#define LINK_NS  900000000ull
#define REST     20  /* times the last query */
#define LIVE_MS  100 /* during a capture: 256 MiB hold 200 ms at 10 Gbit/s */

/* Path of the socket in the switch's arguments; the default, in $OVS_RUNDIR, if they name none.
 * -ENOENT: it uses another kind of connection, or cannot be read. */
static int socket_path(pid_t pid, char *out, size_t size)
{
	char args[RT_PEER_ARGS_MAX], folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	size_t len = rt_peer_args(pid, args), at;

	if (!len)
		return -ENOENT;
	for (at = strlen(args) + 1; at < len; at += strlen(args + at) + 1) {
		const char *arg = args + at;

		if (!strncmp(arg, "unix:", 5))
			return snprintf(out, size, "%.*s", (int)strcspn(arg + 5, ","), arg + 5) <
					       (int)size
				       ? 0
				       : -ENAMETOOLONG;
		if (!strncmp(arg, "tcp:", 4) || !strncmp(arg, "ssl:", 4))
			return -ENOENT;
	}
	if (!rt_peer_env(pid, "OVS_RUNDIR", "/var/run/openvswitch", folder, sizeof(folder)))
		return -ENAMETOOLONG;
	return snprintf(out, size, "%s/db.sock", folder) < (int)size ? 0 : -ENAMETOOLONG;
}

/* NULL: no answer. */
static json_t *query(const struct ucred *peer, const char *path, int within_ms)
{
#define SELECT(type)                                                                      \
	",{\"op\":\"select\",\"table\":\"Interface\",\"where\":[[\"type\",\"==\",\"" type \
	"\"]],\"columns\":[\"name\",\"options\",\"status\",\"link_state\",\"link_speed\"]}"
	static const char question[] =
		"{\"method\":\"transact\",\"id\":0,\"params\":[\"Open_vSwitch\"" SELECT("dpdk")
			SELECT("dpdkvhostuserclient") SELECT("dpdkvhostuser") "]}";
	json_t *root;

	return rt_peer_json(peer->pid, peer->uid, path, question, within_ms, &root) ? NULL : root;
}

/* The value of a key in ["map",[[key,value],...]]; NULL: none. */
static const char *in_map(const json_t *map, const char *key)
{
	const json_t *pairs = json_array_get(map, 1), *pair;
	size_t i;

	json_array_foreach(pairs, i, pair)
	{
		const char *k = json_string_value(json_array_get(pair, 0));

		if (k && !strcmp(k, key))
			return json_string_value(json_array_get(pair, 1));
	}
	return NULL;
}

/* As the probe names it: the end of a long path. */
static void take_path(struct rt_switch_port *p, const char *path)
{
	size_t len = strlen(path), most = sizeof(p->device) - 1;

	rt_str_set(p->device, sizeof(p->device), path + (len > most ? len - most : 0));
}

/* Columns that are not set are empty sets. */
static void take_link(const json_t *row, struct rt_switch_port *p)
{
	const char *state = json_string_value(json_object_get(row, "link_state"));
	json_int_t mbps = json_integer_value(json_object_get(row, "link_speed")) / 1000000;

	p->link = !state ? -1 : !strcmp(state, "up") ? 1 : strcmp(state, "down") ? -1 : 0;
	p->link_mbps = mbps > 0 && mbps <= UINT32_MAX ? (uint32_t)mbps : 0;
}

static bool take_row(const json_t *row, struct rt_switch_port *p)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const json_t *options = json_object_get(row, "options");
	const json_t *status = json_object_get(row, "status");
	const char *args = in_map(options, "dpdk-devargs");
	const char *path = in_map(options, "vhost-server-path");
	const char *number = in_map(status, "port_no");
	char raw[RT_NAME_LEN], *end;
	long id;

	if (!name || !*name)
		return false;
	rt_str_set(raw, sizeof(raw), name);
	rt_copy_text(p->name, raw, sizeof(raw));
	snprintf(p->device, sizeof(p->device), "%.*s", args ? (int)strcspn(args, ",") : 0,
		args ? args : "");
	path = path ? path : in_map(status, "socket");
	p->vhost = !args && path;
	if (p->vhost)
		take_path(p, path);
	take_link(row, p);
	id = number ? strtol(number, &end, 10) : -1;
	p->port_id = number && *number && !*end && id >= 0 && id <= UINT16_MAX ? (int)id : -1;
	return true;
}

void rt_names_take(struct rt_names *n, const json_t *root)
{
	const json_t *results = json_object_get(root, "result"), *result, *row;
	size_t i, k;

	free(n->list);
	n->count = 0;
	n->list = calloc(RT_SWITCH_PORTS_MAX, sizeof(*n->list));
	n->useless = !n->list || !json_array_size(results);
	json_array_foreach(results, i, result)
	{
		const json_t *rows = json_object_get(result, "rows");

		n->useless |= !json_is_array(rows);
		json_array_foreach(rows, k, row)
		{
			if (n->list && n->count < RT_SWITCH_PORTS_MAX)
				n->count += take_row(row, &n->list[n->count]);
		}
	}
}

void rt_names_queried(struct rt_names *n, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t rest_ns = REST * (end_ns - begin_ns);

	n->next_ns = rest_ns > FRESH_NS ? end_ns + rest_ns : begin_ns + FRESH_NS;
}

static void refresh(struct ringtap_conn *c)
{
	struct rt_names *n = &c->names;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct ucred peer;
	socklen_t len = sizeof(peer);
	uint64_t begin_ns = rt_now_ns(CLOCK_MONOTONIC);
	json_t *root = NULL;

	if (!strncmp(c->app.program, PROGRAM, strlen(PROGRAM)) &&
		!getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid > 0 &&
		!socket_path(peer.pid, path, sizeof(path)))
		root = query(&peer, path, n->live ? LIVE_MS : rt_reader_limits.names_ms);
	n->useless = !root && !n->live;
	if (root)
		rt_names_take(n, root);
	json_decref(root);
	rt_names_queried(n, begin_ns, rt_now_ns(CLOCK_MONOTONIC));
}

void rt_names_free(struct rt_names *n)
{
	free(n->list);
	*n = (struct rt_names){0};
}

/* How well a row matches. A port that is not up has no number, a failed one may have an old number,
 * and devargs may be more than a device (class=eth,mac=…, representors). */
static int fit(const struct rt_switch_port *p, uint16_t port_id, const char *device)
{
	bool same = *device && !strcmp(p->device, device);

	return p->port_id == port_id ? 1 + 2 * same : p->port_id < 0 && same ? 2 : 0;
}

/* NULL: none. */
static const struct rt_switch_port *find(
	const struct rt_names *n, uint16_t port_id, const char *device)
{
	const struct rt_switch_port *found = NULL;
	int best = 0;

	for (size_t i = 0; i < n->count; i++) {
		int f = fit(&n->list[i], port_id, device);

		if (f > best) {
			found = &n->list[i];
			best = f;
		}
	}
	return found;
}

bool rt_switch_name(
	struct ringtap_conn *c, uint16_t port_id, const char *device, char name[RT_NAME_LEN])
{
	const struct rt_switch_port *found;

	if (!c->names.useless && rt_now_ns(CLOCK_MONOTONIC) >= c->names.next_ns)
		refresh(c);
	found = find(&c->names, port_id, device);
	snprintf(name, RT_NAME_LEN, "%s", found ? found->name : device);
	return found;
}

void rt_switch_link(struct ringtap_conn *c, uint16_t port_id, const char *device, bool *link_up,
	uint32_t *link_mbps)
{
	const struct rt_switch_port *p;

	if (!c->names.useless && rt_now_ns(CLOCK_MONOTONIC) >= c->names.next_ns + LINK_NS)
		refresh(c);
	p = c->names.useless ? NULL : find(&c->names, port_id, device);
	if (!p || !p->vhost)
		return;
	*link_up = p->link < 0 ? *link_up : p->link;
	*link_mbps = p->link_mbps ? p->link_mbps : *link_mbps;
}

void rt_switch_device(struct ringtap_conn *c, const char *name, char device[RT_NAME_LEN])
{
	struct ringtap_list *list = NULL;
	const char *found = name;

	if (*name && !strncmp(c->app.program, PROGRAM, strlen(PROGRAM)))
		ringtap_conn_list(c, &list);
	for (size_t i = 0; list && i < list->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(list, i);

		if (!strcmp(p->device, name)) { /* names of ethdev have precedence */
			found = name;
			break;
		}
		if (!strcmp(p->name, name))
			found = p->device;
	}
	snprintf(device, RT_NAME_LEN, "%s", found);
	ringtap_list_free(list);
}
