/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "capture_config.h"
#include "packet/inner.h"

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

int capture_config_compile(const struct capture_config *c, struct filter *f, const char *expression,
	enum ringtap_tags tags, uint16_t linktype, char *err, size_t err_len)
{
	char why[512] = "not enough memory";
	int ret = filter_compile_inner(f, c->inner, expression, tags, linktype, why, sizeof(why));

	if (ret)
		snprintf(err, err_len, "filter '%s': %s", expression ? expression : "", why);
	else
		ret = cut_apply(f, c->cuts, c->cut_count, c->inner, tags, linktype, err, err_len);
	if (ret)
		filter_free(f);
	return ret;
}

static int compile(const struct capture_config *c, struct iface_config *i)
{
	char err[512] = "not enough memory";

	if (!capture_config_compile(c, &i->compiled, i->filter, c->tags, RINGTAP_LINKTYPE_ETHERNET,
		    err, sizeof(err)))
		return 0;
	return message_fail(-EINVAL, "%s: %s; see pcap-filter(7)", c->command, err);
}

int capture_config_cut(struct capture_config *c, const char *text)
{
	const struct cut *before = c->cut_count ? &c->cuts[c->cut_count - 1] : NULL;

	if (before && !before->filter)
		return message_fail(-EINVAL,
			"%s: --cut %s: the one before it, without a filter, is for all packets; "
			"give that last",
			c->command, text);
	if (c->cut_count == CUT_MAX)
		return message_fail(
			-EINVAL, "%s: --cut: too many; give at most %d", c->command, CUT_MAX);
	if (cut_parse(&c->cuts[c->cut_count], text))
		return message_fail(-EINVAL,
			"%s: --cut %s: unknown length; give headers, l4+N or N up to %d, and "
			":FILTER for some packets",
			c->command, text, RINGTAP_SNAPLEN_MAX);
	c->cut_count++;
	c->options.lengths = true;
	return 0;
}

/* N packets, or a size. */
static int parse_first(const char *text, uint64_t *n, bool *packets)
{
	static const char of[] = "/flow";
	size_t len = strlen(text), tail = strlen(of);
	char word[FORMAT_LEN];

	if (len <= tail || strcmp(text + len - tail, of) || len - tail >= sizeof(word))
		return -EINVAL;
	len -= tail;
	memcpy(word, text, len);
	word[len] = 0;
	*packets = word[len - 1] == 'p';
	if (!*packets)
		return parse_size(word, 1, n);
	word[len - 1] = 0;
	return parse_count(word, n);
}

int capture_config_first(struct capture_config *c, const char *text)
{
	uint64_t n = 0;

	if (parse_first(text, &n, &c->options.first_packets) || !n || n > RT_FIRST_MAX)
		return message_fail(-EINVAL,
			"%s: --first %s: unknown limit; give a size or packets of each flow up to "
			"2G, as in 32k/flow or 100p/flow",
			c->command, text);
	c->options.first = (uint32_t)n;
	return 0;
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
	if (c->options.first_flows & (c->options.first_flows - 1))
		return message_fail(-EINVAL,
			"%s: --first-flows %u: not a power of two; give 256, 512 and so on up to "
			"%d",
			c->command, c->options.first_flows, FIRST_FLOWS_MAX);
	if (c->options.first_flows && !c->options.first)
		return message_fail(-EINVAL,
			"%s: --first-flows: is for --first; add it, or leave it out", c->command);
	c->options.first_inner = c->inner;
	if (!c->iface_count)
		c->ifaces[c->iface_count++] = c->defaults;
	for (unsigned i = 0; i < c->iface_count && !ret; i++) {
		ret = check_texts(c->command, &c->ifaces[i]);
		if (!ret)
			ret = compile(c, &c->ifaces[i]);
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
