/* SPDX-License-Identifier: BSD-3-Clause */
/* Reasons: a name without an application, missing statistics. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "target/which_app.h"
#include "watch.h"

size_t watch_named(const struct watch *w)
{
	size_t count = 0;

	for (size_t n = 0; n < w->name_count; n++) {
		bool again = false;

		for (size_t k = 0; k < n && w->named[n] >= 0; k++)
			again |= w->named[k] == w->named[n];
		count += !again;
	}
	return count;
}

/* Enough of its ports to compare names. The caller frees. */
static struct ringtap_port_info *ports_of(const struct ringtap_snapshot *f, size_t *count)
{
	struct ringtap_port_info *ports = calloc(f->port_count + 1, sizeof(*ports));

	*count = 0;
	for (uint32_t i = 0; ports && i < f->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(f, i);
		struct ringtap_port_info *to = &ports[*count];

		if (p->gone)
			continue;
		to->port_id = p->port_id;
		snprintf(to->name, sizeof(to->name), "%s", p->name);
		snprintf(to->device, sizeof(to->device), "%s", p->device);
		snprintf(to->driver, sizeof(to->driver), "%s", p->driver);
		++*count;
	}
	return ports;
}

/* From its snapshot: nothing waits for the application. */
static int check_ports(const char *command, const struct watched *a)
{
	struct ringtap_list list = {.port_count = 0};
	struct ringtap_port_info *ports = ports_of(a->now, &list.port_count);
	int status = STATUS_OK;

	list.ports = (struct ringtap_array){ports, sizeof(*ports)};
	for (size_t k = 0; ports && k < a->port_count; k++) {
		if (target_has_port(&list, a->ports[k]))
			continue;
		print_no_port(command, a->name, a->info.host_pid, a->ports[k], &list);
		status = STATUS_FAILED;
	}
	free(ports);
	return status;
}

int watch_check_ports(struct watch *w)
{
	int status = STATUS_OK;

	watch_lock(w);
	for (size_t i = 0; i < w->count; i++) {
		struct watched *a = w->list[i];

		if (!a->now || !a->port_count || a->ports_checked)
			continue;
		a->ports_checked = true;
		if (check_ports(w->command, a) != STATUS_OK)
			status = STATUS_FAILED;
	}
	watch_unlock(w);
	return status;
}

/* Why an application shows no statistics, or not all of them. False: it shows all. */
static bool reason_of(const struct watched *a, char *line, size_t size)
{
	if (a->error == -EPROTONOSUPPORT)
		snprintf(line, size, "%s: without the probe; 'ringtap attach %s' loads it", a->name,
			a->name);
	else if (a->error)
		snprintf(line, size, "%s: %s", a->name, a->why);
	else if (a->now && a->now->ports_beyond)
		snprintf(line, size,
			"%s: ports without an entry: %u; entries of ports that went become free "
			"when the last monitor detaches",
			a->name, a->now->ports_beyond);
	else if (a->now && a->now->collectors & RINGTAP_XSTATS && a->now->xstats_beyond)
		snprintf(line, size,
			"%s: xstats without an entry: %u; there are 512 entries for a port, and "
			"2048 in all",
			a->name, a->now->xstats_beyond);
	else if (a->now && a->now->collectors & RINGTAP_DEVICES && a->now->device_stats_beyond)
		snprintf(line, size,
			"%s: statistics of devices without an entry: %u; there are 2048 entries",
			a->name, a->now->device_stats_beyond);
	else
		return false;
	return true;
}

bool watch_reason(struct watch *w, size_t n, char line[WATCH_REASON_LEN])
{
	bool found = false;

	watch_lock(w);
	for (size_t i = 0; i < w->count && !found; i++)
		found = reason_of(w->list[i], line, WATCH_REASON_LEN) && !n--;
	for (size_t i = 0; i < w->name_count && !found; i++) {
		found = w->named[i] < 0 && !n--;
		if (found)
			snprintf(line, WATCH_REASON_LEN,
				w->named[i] == -ENOTUNIQ
					? "several applications run '%s'; name one by its name or "
					  "process id, which 'ringtap list' shows"
					: "no application is called '%s'; %s",
				w->names[i], w->advice[i] ? w->advice[i] : "");
	}
	watch_unlock(w);
	return found;
}

void watch_explain(struct watch *w)
{
	char line[WATCH_REASON_LEN];

	for (size_t n = 0; watch_reason(w, n, line); n++)
		message_print("%s: %s", w->command, line);
	if (!w->count && !w->name_count)
		message_print(
			"%s: no running DPDK application found; run ringtap as its user or as "
			"root%s",
			w->command, w->by_user ? ", with --users for other users" : "");
}

void watch_explain_wait(struct watch *w)
{
	watch_explain(w);
	watch_check_ports(w);
	if (!watch_attached(w))
		message_print("%s: nothing to show yet; waiting for an application", w->command);
}
