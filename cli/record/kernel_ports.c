/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "common/status.h"
#include "kernel_ports.h"
#include "target/which_app.h"

#define OPEN_VSWITCH "ovs-vswitchd"

static bool is_here(uint32_t pid)
{
	char path[64];
	struct stat theirs, ours;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	return !stat(path, &theirs) && !stat("/proc/self/ns/net", &ours) &&
	       theirs.st_ino == ours.st_ino;
}

/* The interface that a target means; NULL: it is a port of DPDK, or targets_resolve() refuses it.
 */
static const char *interface_of(const struct ringtap_apps *apps, const char *spec)
{
	struct ringtap_list *list;
	const char *port = NULL;
	char name[64];
	bool found;
	int app = target_word(apps, spec, &port, NULL);
	uint32_t pid = app < 0 ? 0 : ringtap_apps_pid(apps, (size_t)app);

	if (app < 0 || !port || !if_nametoindex(port) || !is_here(pid))
		return NULL;
	rt_process_status((pid_t)pid, "Name", name, sizeof(name));
	if (strncmp(name, OPEN_VSWITCH, strlen(OPEN_VSWITCH)) != 0)
		return NULL;
	list = target_ports(ringtap_apps_dir(apps, (size_t)app));
	found = list && !target_has_port(list, port);
	ringtap_list_free(list);
	return found ? port : NULL;
}

/* Waits until it receives: it prints a line for each interface then, of which last is the last. */
static int start(struct child *c, const char *const argv[], const char *last)
{
	char notice[IF_NAMESIZE + 32];
	const struct child_config cfg = {
		.flags = CHILD_READ_ERR | CHILD_PASS_ERR, .death_signal = SIGTERM};
	int ret = child_start(c, argv, &cfg);

	if (ret)
		return message_fail(ret, "record: cannot start ringtap host: %s", start_error(ret));
	snprintf(notice, sizeof(notice), "ringtap: host: %s is ", last);
	c->notice = notice;
	while (!c->ended && c->notice)
		child_watch(c, -1, -1, NS_PER_S);
	c->notice = NULL;
	return c->ended ? -EIO : 0;
}

static bool is_running(const struct ringtap_apps *apps, const char *name)
{
	return target_app(apps, name, strlen(name), NULL) >= 0;
}

/* names[i] is NULL, or the interface of target i. */
static int begin(struct kernel_ports *k, struct capture_config *cfg,
	const struct ringtap_apps *apps, const char *const *names)
{
	const char *argv[CAPTURE_IFACES_MAX + 3] = {"/proc/self/exe", "host"};
	char app[32 * CAPTURE_IFACES_MAX] = "host";
	size_t len = strlen(app);
	unsigned n = 2;

	for (unsigned i = 0; i < cfg->iface_count; i++) {
		bool again = false;

		for (unsigned j = 0; j < i && names[i]; j++)
			again |= names[j] && !strcmp(names[j], names[i]);
		if (!names[i] || again)
			continue;
		argv[n++] = names[i];
		len += (size_t)snprintf(app + len, sizeof(app) - len, "-%s", names[i]);
	}
	for (unsigned i = 0; i < cfg->iface_count; i++) {
		if (!names[i])
			continue;
		if (asprintf(&k->specs[i], "%s:%s", app, names[i]) < 0) {
			k->specs[i] = NULL;
			return -ENOMEM;
		}
		cfg->ifaces[i].spec = k->specs[i];
		cfg->ifaces[i].port_alone = false;
	}
	return n == 2 || is_running(apps, app) ? 0 : start(&k->host, argv, argv[n - 1]);
}

int kernel_ports_begin(struct kernel_ports *k, struct capture_config *cfg)
{
	const char *names[CAPTURE_IFACES_MAX] = {NULL};
	struct ringtap_apps *apps;
	bool any = false;
	int ret;

	*k = (struct kernel_ports){.host = CHILD_NONE};
	for (unsigned i = 0; i < cfg->iface_count; i++) {
		const char *spec = cfg->ifaces[i].spec, *port = spec ? strrchr(spec, ':') : NULL;

		any |= port && if_nametoindex(port + 1);
	}
	if (!any || ringtap_apps_find(&apps))
		return 0; /* targets_resolve() reports it */
	for (unsigned i = 0; i < cfg->iface_count; i++)
		names[i] = cfg->ifaces[i].spec ? interface_of(apps, cfg->ifaces[i].spec) : NULL;
	ret = begin(k, cfg, apps, names);
	ringtap_apps_free(apps);
	return ret;
}

void kernel_ports_end(struct kernel_ports *k)
{
	if (k->host.pid)
		(void)child_stop(&k->host, SIGTERM, 2 * NS_PER_S);
	child_free(&k->host);
	for (unsigned i = 0; i < CAPTURE_IFACES_MAX; i++)
		free(k->specs[i]);
}
