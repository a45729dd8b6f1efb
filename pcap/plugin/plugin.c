/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in as a plug-in of libpcap: each handle of libpcap has one of the drop-in, which does
 * the work. */
#include <stdlib.h>

#include "host.h"
#include "pcap/handle.h"

static pcap_t **slot_of(pcap_t *p)
{
	return host.priv(p);
}

static pcap_t *ours(pcap_t *p)
{
	return *slot_of(p);
}

/* Passes on an error's text. */
static int result(pcap_t *p, int ret)
{
	if (ret < 0 && ret != PCAP_ERROR_BREAK)
		host.set_errbuf(p, "%s", real()->pcap_geterr(ours(p)));
	return ret;
}

/* ---- operations */

static int read_op(pcap_t *p, int count, pcap_handler callback, u_char *user)
{
	return result(p, pcap_dispatch(ours(p), count, callback, user));
}

static int inject(pcap_t *p, const void *data, int size)
{
	return result(p, pcap_inject(ours(p), data, (size_t)size));
}

static int set_filter(pcap_t *p, struct bpf_program *program)
{
	return result(p, pcap_setfilter(ours(p), program));
}

static int set_direction(pcap_t *p, pcap_direction_t direction)
{
	return result(p, pcap_setdirection(ours(p), direction));
}

static int set_datalink(pcap_t *p, int dlt)
{
	return result(p, pcap_set_datalink(ours(p), dlt));
}

static int get_nonblock(pcap_t *p)
{
	char err[PCAP_ERRBUF_SIZE];

	return result(p, pcap_getnonblock(ours(p), err));
}

static int set_nonblock(pcap_t *p, int nonblock)
{
	char err[PCAP_ERRBUF_SIZE];

	return result(p, pcap_setnonblock(ours(p), nonblock, err));
}

static int stats(pcap_t *p, struct pcap_stat *s)
{
	return result(p, pcap_stats(ours(p), s));
}

static void break_loop(pcap_t *p)
{
	pcap_breakloop(ours(p));
}

static void clean_up(pcap_t *p)
{
	if (ours(p))
		pcap_close(ours(p));
	*slot_of(p) = NULL;
	host.cleanup_live(p);
}

static const struct plugin_ops ops = {.read = read_op,
	.inject = inject,
	.setfilter = set_filter,
	.setdirection = set_direction,
	.set_datalink = set_datalink,
	.getnonblock = get_nonblock,
	.setnonblock = set_nonblock,
	.stats = stats,
	.cleanup = clean_up,
	.breakloop = break_loop};

/* ---- making */

static void configure(pcap_t *p)
{
	pcap_set_snaplen(ours(p), host.get_snapshot(p));
	pcap_set_timeout(ours(p), host.get_timeout(p));
	pcap_set_buffer_size(ours(p), host.get_buffer_size(p));
	pcap_set_tstamp_precision(ours(p), host.get_tstamp_precision(p));
	if (host.get_tstamp_type(p) >= 0)
		pcap_set_tstamp_type(ours(p), host.get_tstamp_type(p));
}

/* libpcap does not clean up after a failure, and may try again. */
static int activate(pcap_t *p)
{
	char err[PCAP_ERRBUF_SIZE];
	int ret;

	*slot_of(p) = pcap_create(host.get_device(p), err);
	if (!ours(p)) {
		host.set_errbuf(p, "%s", err);
		return PCAP_ERROR;
	}
	configure(p);
	ret = pcap_activate(ours(p));
	if (ret)
		host.set_errbuf(p, "%s", real()->pcap_geterr(ours(p)));
	if (ret < 0) {
		pcap_close(ours(p));
		*slot_of(p) = NULL;
		return ret;
	}
	host.set_linktype(p, pcap_datalink(ours(p)));
	host.set_snapshot(p, pcap_snapshot(ours(p)));
	host.set_selectable_fd(p, pcap_get_selectable_fd(ours(p)));
	host.set_ops(p, &ops);
	return ret;
}

static void list_time_stamps(pcap_t *p, const char *device)
{
	static const int precisions[] = {PCAP_TSTAMP_PRECISION_MICRO, PCAP_TSTAMP_PRECISION_NANO};
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *q = pcap_create(device, err);
	int *types, n = q ? pcap_list_tstamp_types(q, &types) : -1;

	if (n >= 0) {
		host.set_tstamp_type_list(p, types, n);
		free(types);
	}
	host.set_tstamp_precision_list(p, precisions, 2);
	if (q)
		pcap_close(q);
}

static pcap_t *create(const char *device, char *err, int *is_ours)
{
	pcap_t *p;

	*is_ours = host_find(__builtin_return_address(0)) && name_is_ours(device);
	if (!*is_ours)
		return NULL;
	p = host.create_handle(err, sizeof(pcap_t *));
	if (!p)
		return NULL;
	*slot_of(p) = NULL;
	host.set_activate(p, activate);
	list_time_stamps(p, device);
	return p;
}

static int find_devices(struct device_list *all, char *err)
{
	pcap_if_t *list = NULL;
	int ret = 0;

	if (!host_find(__builtin_return_address(0)))
		return 0;
	devices_add(&list);
	for (pcap_if_t *d = list, *next; d; d = next) {
		next = d->next;
		if (!ret && !host.add_dev(all, d->name, d->flags, d->description, err))
			ret = PCAP_ERROR;
		free(d->name);
		free(d->description);
		free(d);
	}
	return ret;
}

EXPORT struct plugin_entry pcap_plugin_entry;
EXPORT struct plugin_entry pcap_plugin_entry = {.abi_version = PLUGIN_ABI,
	.name = "ringtap",
	.findalldevs = find_devices,
	.create = create};
