/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports whose packets are not Ethernet's. A target is of one link type, so each of the command line
 * becomes one for each type that its ports have, with a filter that was compiled for it.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "targets.h"
#include "which_app.h"

#define TYPES_MAX 8 /* ringtap-host has four */

/* The types of the ports of a target. Returns their number. */
static unsigned types_of(
	const struct ringtap_list *list, const char *port, uint16_t types[TYPES_MAX])
{
	unsigned n = 0;

	for (size_t i = 0; i < list->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(list, i);
		unsigned k = 0;

		if (port && !target_port_matches(p->name, p->device, p->port_id, port))
			continue;
		while (k < n && types[k] != p->linktype)
			k++;
		if (k == n && n < TYPES_MAX)
			types[n++] = p->linktype;
	}
	return n;
}

static bool all_ethernet(const uint16_t *types, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (types[i] != RINGTAP_LINKTYPE_ETHERNET)
			return false;
	return true;
}

static int put(struct target *t, const struct target *from, unsigned i, uint16_t linktype,
	const struct capture_config *cfg)
{
	const char *expression = from->ifaces[i]->filter;
	unsigned n = t->port_count;
	char err[512] = "not enough memory";

	if (n == CAPTURE_IFACES_MAX)
		return message_fail(-E2BIG,
			"%s: '%s' needs more than %d targets, one for each link type; leave "
			"out some",
			cfg->command, t->name, CAPTURE_IFACES_MAX);
	t->ports[n] = from->ports[i];
	t->ifaces[n] = from->ifaces[i];
	t->port_count++;
	if (linktype == RINGTAP_LINKTYPE_ETHERNET || !linktype)
		return 0;
	t->ports[n].linktype = linktype;
	if (capture_config_compile(cfg, &t->filters[n], expression, RINGTAP_TAGS_AS_IS, linktype,
		    err, sizeof(err)))
		return message_fail(-EINVAL,
			"%s: for ports of '%s' without Ethernet headers: %s; see pcap-filter(7)",
			cfg->command, t->name, err);
	t->ports[n].filter = t->filters[n].insns;
	t->ports[n].filter_len = t->filters[n].len;
	return 0;
}

/* All ports, also those to come, are first of Ethernet. */
static int add_links(
	struct target *t, const struct ringtap_list *list, const struct capture_config *cfg)
{
	const struct target from = *t;
	int ret = 0;

	t->port_count = 0;
	for (unsigned i = 0; i < from.port_count && !ret; i++) {
		const char *port = from.ports[i].port;
		uint16_t types[TYPES_MAX];
		unsigned n = types_of(list, port, types);

		if (!port || all_ethernet(types, n))
			ret = put(t, &from, i, 0, cfg);
		for (unsigned k = 0; k < n && !ret; k++)
			if (types[k] != RINGTAP_LINKTYPE_ETHERNET)
				ret = put(t, &from, i, types[k], cfg);
	}
	return ret;
}

/* A file of pcap has one link type for all packets. *one: that of the applications so far, 0: none.
 */
static int check_pcap(
	const struct target *t, const struct ringtap_list *list, uint16_t *one, const char *command)
{
	for (unsigned i = 0; i < t->port_count; i++) {
		uint16_t types[TYPES_MAX];
		unsigned n = types_of(list, t->ports[i].port, types);

		for (unsigned k = 0; k < n; k++) {
			if (*one && *one != types[k])
				return message_fail(-EINVAL,
					"%s: the ports have link types %u and %u, and a pcap "
					"file has one; leave out -P, or record them apart",
					command, *one, types[k]);
			*one = types[k];
		}
	}
	return 0;
}

int targets_add_links(struct targets *t, const struct capture_config *cfg)
{
	uint16_t one = 0, types[TYPES_MAX];
	int ret = 0;

	for (unsigned i = 0; i < t->count && !ret; i++) {
		struct ringtap_list *list = target_ports(t->list[i].dir);

		/* Attaching reports an application that does not answer. */
		if (list && cfg->one_linktype)
			ret = check_pcap(&t->list[i], list, &one, cfg->command);
		if (!ret && list && !all_ethernet(types, types_of(list, NULL, types)))
			ret = add_links(&t->list[i], list, cfg);
		ringtap_list_free(list);
	}
	return ret;
}

void target_free_filters(struct target *t)
{
	for (unsigned i = 0; i < t->port_count; i++)
		filter_free(&t->filters[i]);
}
