/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "config.h"
#include "options.h"
#include "parse.h"
#include "base/util.h"

const char *const plane_names[] = {"dpdk", "packet", "packet-mmap"};
const char *const memory_names[] = {
	"dpdk", "4k", "thp", "huge", "gpu", "gpu-managed", "gpu-pinned"};
const char *const order_names[] = {"ring", "stack", "shuffled"};
const char *const role_names[] = {"forward", "oneway", "echo", "generate", "sink"};

void config_init(struct fwd_config *c)
{
	*c = (struct fwd_config){
		.descriptors = 512,
		.sizes = {FRAME_MIN},
		.size_count = 1,
		.stages = {{.rate = 1000}},
		.stage_count = 1,
		.seed = 1,
		.src_ip = 0xC6120001, /* 198.18.0.0/15 is for benchmarks: RFC 2544 */
		.dst_ip = 0xC6120002,
		.timeout_ns = NS_PER_S,
		.link_ns = 5 * NS_PER_S,
		.page_size = 2 << 20,
		.pool_size = 8191,
		.pool_cache = 256,
		.buffer_size = 2176,
		.sample_every = 64,
		.sample_run = 1,
		.samples_max = 1 << 20,
	};
}

static int bad(const char *option, const struct option_value *v, int ret, const char *give)
{
	if (ret == -ERANGE)
		message_print("%s %s: out of range; give %s", option, v->text, give);
	else
		message_print("%s %s: invalid value; give %s", option, v->text, give);
	return -EINVAL;
}

static int add(const char **list, unsigned *count, const char *option, const char *text)
{
	if (*count == DEVICES_MAX)
		return message_fail(
			-EINVAL, "%s %s: too many; the maximum is %d", option, text, DEVICES_MAX);
	list[(*count)++] = text;
	return 0;
}

static int add_role(struct fwd_config *c, const struct option_value *v)
{
	if (c->role_count == ROLES_MAX)
		return message_fail(
			-EINVAL, "--role %s: too many; the maximum is %d", v->text, ROLES_MAX);
	if (!parse_role(v->text, &c->roles[c->role_count])) {
		c->role_count++;
		return 0;
	}
	return bad("--role", v, -EINVAL,
		"forward:A,B, oneway:A,B, echo:A, generate:A or sink:A, optionally followed by "
		"@CPU");
}

static int set_rate(struct fwd_config *c, const struct option_value *v)
{
	int ret = parse_rate(v->text, false, &c->stages[0].rate);

	c->stages[0].ns = 0;
	c->stage_count = 1;
	c->rate_given = true;
	return ret ? bad("--rate", v, ret, "1 to 1G packets per second, such as 1.5M, or max") : 0;
}

static int set_ip(const char *option, const struct option_value *v, uint32_t *out)
{
	struct in_addr a;

	if (inet_pton(AF_INET, v->text, &a) != 1)
		return bad(option, v, -EINVAL, "an IPv4 address");
	*out = ntohl(a.s_addr);
	return 0;
}

/* EAL makes a folder of this name, which is removed at the end. */
static int set_name(struct fwd_config *c, const struct option_value *v)
{
	size_t len = strlen(v->text);

	if (!len || len > 200 || strchr(v->text, '/') || !strcmp(v->text, ".") ||
		!strcmp(v->text, ".."))
		return bad("--name", v, -EINVAL, "a name of up to 200 characters without a /");
	c->name = v->text;
	return 0;
}

/* Options with structured values. */
static int set_parsed(struct fwd_config *c, int id, const struct option_value *v)
{
	int ret;

	switch (id) {
	case OPT_STAGES:
		c->rate_given = true;
		ret = parse_stages(v->text, c->stages, &c->stage_count);
		return ret ? bad("--stages", v, ret,
				     "RATE:TIME,… such as 10M:5s,15M:5s, rates up to 1G, at most "
				     "32 of them")
			   : 0;
	case OPT_SIZES:
		ret = parse_sizes(v->text, c->sizes, &c->size_count);
		return ret ? bad("--sizes", v, ret,
				     "60 to 9600 bytes, a mix such as 60x7,590x4,1514 of at most "
				     "64 frames, or imix")
			   : 0;
	case OPT_TX_FULL:
		ret = parse_tx_full(v->text, &c->tx_full);
		return ret ? bad("--tx-full", v, ret, "drop, retry or retry:N") : 0;
	case OPT_SINK_RATE:
		ret = parse_rate(v->text, false, &c->sink_rate);
		if (c->sink_rate == RATE_UNLIMITED)
			c->sink_rate = 0;
		return ret ? bad("--sink-rate", v, ret, "1 to 1G packets per second, or max") : 0;
	case OPT_DST_MAC:
		c->dst_mac_given = true;
		return parse_mac(v->text, c->dst_mac)
			       ? bad("--dst-mac", v, -EINVAL,
					 "an address such as 02:00:00:00:00:01")
			       : 0;
	case OPT_SRC_IP: return set_ip("--src-ip", v, &c->src_ip);
	case OPT_DST_IP: return set_ip("--dst-ip", v, &c->dst_ip);
	default: return -EINVAL;
	}
}

int config_set(void *ctx, int id, const struct option_value *v)
{
	struct fwd_config *c = ctx;

	switch (id) {
	case OPT_ROLE: return add_role(c, v);
	case OPT_VDEV: return add(c->vdevs, &c->vdev_count, "--vdev", v->text);
	case OPT_RING: return add(c->rings, &c->ring_count, "--ring", v->text);
	case OPT_PCI: return add(c->pcis, &c->pci_count, "--pci", v->text);
	case OPT_RATE: return set_rate(c, v);
	case OPT_NAME: return set_name(c, v);
	case OPT_PAGE_SIZE: c->page_size = v->number ? 1 << 30 : 2 << 20; return 0;
	case OPT_STAGES:
	case OPT_SIZES:
	case OPT_TX_FULL:
	case OPT_SINK_RATE:
	case OPT_DST_MAC:
	case OPT_SRC_IP:
	case OPT_DST_IP: return set_parsed(c, id, v);
	}
	return -EINVAL;
}

bool config_has(const struct fwd_config *c, enum role_kind kind)
{
	for (unsigned i = 0; i < c->role_count; i++)
		if (c->roles[i].kind == kind)
			return true;
	return false;
}

static const char *conflict(const struct fwd_config *c)
{
	bool generates = config_has(c, ROLE_GENERATE);
	bool forwards = config_has(c, ROLE_FORWARD) || config_has(c, ROLE_ONEWAY) ||
			config_has(c, ROLE_ECHO);

	if (!c->role_count)
		return "no --role: there is nothing to do; give one, such as --role echo:0";
	if (c->rtt && !generates)
		return "--rtt: needs --role generate";
	if (c->outstanding && !c->rtt)
		return "--outstanding: needs --rtt, which receives the replies";
	if (c->pcap && c->rtt)
		return "--rtt: frames of --replay have no stamp to measure by; remove one of the "
		       "options";
	if (c->timing && !c->pcap)
		return "--timing: needs --replay, whose file has the times";
	if (c->timing && (c->rate_given || c->poisson))
		return "--timing: the file has the times; remove --rate, --stages and --poisson";
	if (c->samples && !forwards && !config_has(c, ROLE_SINK))
		return "--samples: needs a role that receives";
	if (c->samples && c->plane != PLANE_DPDK)
		return "--samples: needs --plane dpdk";
	if (c->latency && !forwards)
		return "--latency-sample: needs a role that forwards; --rtt measures round trips";
	if (c->sample_run > c->sample_every)
		return "--sample-run: longer than --sample";
	if (c->plane != PLANE_DPDK &&
		(c->vdev_count || c->ring_count || c->pci_count || c->eal_argc))
		return "--vdev, --ring, --pci and EAL options: need --plane dpdk";
	if (c->plane != PLANE_DPDK && (c->memory != MEMORY_DPDK || c->order != ORDER_RING))
		return "--pool-memory and --pool-order: need --plane dpdk; the other planes use the "
		       "kernel's buffers";
	if (c->sleep && c->plane == PLANE_DPDK)
		return "--sleep: needs --plane packet or packet-mmap";
	if (c->sleep && (config_has(c, ROLE_FORWARD) || (generates && c->rtt && !c->outstanding)))
		return "--sleep: a thread can wait for one event only; give oneway roles instead "
		       "of forward, and --outstanding with --rtt";
	if (c->memory == MEMORY_GPU && (c->mac_swap || c->rtt || c->pcap))
		return "--pool-memory gpu: the CPU cannot access the packets; remove --mac-swap, --rtt "
		       "and --replay";
	return NULL;
}

int config_check(struct fwd_config *c)
{
	const char *why = conflict(c);

	if (!c->burst)
		c->burst = c->plane == PLANE_PACKET ? 1 : 32;

	for (unsigned i = 0; !why && i < c->size_count; i++)
		if (c->frame == FRAME_ARP && !c->pcap && c->sizes[i] != FRAME_MIN)
			why = "--sizes: ARP requests have 60 bytes; give --frame udp";
	for (unsigned i = 0; !why && i < c->size_count; i++)
		if (c->plane == PLANE_DPDK &&
			(c->sizes[i] + FRAME_ROOM - 1) / FRAME_ROOM * FRAME_ROOM + HEADROOM >
				c->buffer_size)
			why = "--sizes: frames do not fit into the buffers; give a --mbuf-size "
			      "192 bytes above the greatest size";
	if (!why)
		return 0;
	return message_fail(-EINVAL, "%s", why);
}
