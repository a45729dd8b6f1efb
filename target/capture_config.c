/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "capture_config.h"

void capture_config_init(struct capture_config *c, const char *command)
{
	*c = (struct capture_config){.command = command,
		.defaults = {.snaplen = RINGTAP_SNAPLEN_MAX,
			.directions = RINGTAP_RX | RINGTAP_TX,
			.queue = -1},
		.options = {.size = sizeof(c->options)}};
}

static int check_texts(const char *command, const struct iface_config *i)
{
	if ((i->ifname && strlen(i->ifname) > 65535) ||
		(i->ifdescr && strlen(i->ifdescr) > 65535) ||
		(i->filter && strlen(i->filter) > 65534))
		return message_fail(-EINVAL,
			"%s: --ifname, --ifdescr or -f: longer than 65535 bytes; make it "
			"shorter",
			command);
	return 0;
}

static int compile(const char *command, struct iface_config *i, enum ringtap_tags tags)
{
	char err[512] = "not enough memory";

	if (!filter_compile(
		    &i->compiled, i->filter, tags, RINGTAP_LINKTYPE_ETHERNET, err, sizeof(err)))
		return 0;
	return message_fail(
		-EINVAL, "%s: filter '%s': %s; see pcap-filter(7)", command, i->filter, err);
}

int sample_check(const char *command, uint32_t n)
{
	if (!n || !(n & (n - 1)))
		return 0;
	return message_fail(
		-EINVAL, "%s: --sample %u: not a power of two; give 2, 4, 8 and so on", command, n);
}

int capture_config_check(struct capture_config *c)
{
	int ret = 0;

	if (sample_check(c->command, c->options.sample))
		return -EINVAL;
	if (!c->iface_count)
		c->ifaces[c->iface_count++] = c->defaults;
	for (unsigned i = 0; i < c->iface_count && !ret; i++) {
		ret = check_texts(c->command, &c->ifaces[i]);
		if (!ret)
			ret = compile(c->command, &c->ifaces[i], c->tags);
	}
	return ret;
}

uint32_t capture_config_snaplen(const struct capture_config *c, uint32_t *least)
{
	uint32_t low = UINT32_MAX, high = 0;

	for (unsigned i = 0; i < c->iface_count; i++) {
		low = c->ifaces[i].snaplen < low ? c->ifaces[i].snaplen : low;
		high = c->ifaces[i].snaplen > high ? c->ifaces[i].snaplen : high;
	}
	if (least)
		*least = low;
	return high;
}

void capture_config_free(struct capture_config *c)
{
	for (unsigned i = 0; i < c->iface_count; i++)
		filter_free(&c->ifaces[i].compiled);
}
