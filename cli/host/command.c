/* SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces of the kernel as ports of a DPDK application. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "host.h"
#include "netdev.h"
#include "cli/probe_path.h"
#include "base/util.h"

enum {
	OPT_DRIVER = 1,
	OPT_QUEUES,
	OPT_NAME,
	OPT_NO_PROMISCUOUS,
	OPT_CPUS,
	OPT_BUSY,
	OPT_BUFFER,
	OPT_FRAME,
	OPT_MEMORY,
	OPT_HUGE,
	OPT_VERBOSE,
};

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to receive"},
	{OPT_DRIVER, OPTION_CHOICE, 0, "driver", "af_packet|af_xdp", "af_packet|af_xdp", 0, 0,
		"af_packet (the default): a copy of what the interface receives and sends; the "
		"host's network is not affected. af_xdp: faster, but received packets are TAKEN "
		"AWAY from the host: for ports that only capture"},
	{OPT_QUEUES, OPTION_NUMBER, 0, "queues", "N", NULL, 1, 64,
		"Receive on N queues; flows are spread over them (default: 1; with af_xdp all "
		"queues of the interface, as others are not captured)"},
	{OPT_NO_PROMISCUOUS, OPTION_FLAG, 'p', "no-promiscuous-mode", NULL, NULL, 0, 0,
		"Do not switch the interface to promiscuous mode: it may drop packets for other "
		"hosts"},
	{OPT_NAME, OPTION_TEXT, 0, "name", "NAME", NULL, 0, 0,
		"Name of the application; by default host-IFACE, host-IFACE1-IFACE2 and so on"},
	{.kind = OPTION_HEADING, .help = "Resources"},
	{OPT_CPUS, OPTION_TEXT, 0, "cpus", "LIST", NULL, 0, 0,
		"Receive on these CPUs, as in 2,4-6, with a thread on each (default: one thread, "
		"on any CPU)"},
	{OPT_BUSY, OPTION_FLAG, 0, "busy-poll", NULL, NULL, 0, 0,
		"Never sleep: for rates of millions of packets a second (default: sleep for 50 "
		"to 500 us when no packets come)"},
	{OPT_BUFFER, OPTION_SIZE, 0, "buffer-size", "BYTES", NULL, 65536, (uint64_t)1 << 30,
		"af_packet: memory per queue for packets that wait to be received, with K, M or "
		"G (default: 32M). The driver allocates the same again for sending, which is not "
		"used"},
	{OPT_FRAME, OPTION_NUMBER, 0, "frame-size", "BYTES", NULL, 64, HOST_FRAME_MAX,
		"af_packet: longest packet; longer ones are cut (default: by the MTU, or 65342 "
		"bytes where the kernel merges packets: GRO, LRO, TSO, GSO; see ethtool -k). "
		"Every packet takes that much of the buffer"},
	{OPT_MEMORY, OPTION_SIZE, 0, "memory", "BYTES", NULL, 16 << 20, (uint64_t)64 << 30,
		"Memory of DPDK (default: as needed)"},
	{OPT_HUGE, OPTION_FLAG, 0, "huge-pages", NULL, NULL, 0, 0,
		"Use huge pages, which must be free (default: ordinary memory)"},
	{OPT_VERBOSE, OPTION_FLAG, 'v', "verbose", NULL, NULL, 0, 0, "Show DPDK's messages"},
};

static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap host captures on network interfaces of the kernel: a small DPDK "
		"application with the probe receives from them, so that all other commands, and "
		"programs started by ringtap run, work on them as on any other port. Interface "
		"eth0 becomes ringtap:host-eth0:eth0. It runs until a signal comes or the last "
		"interface is removed.\n\n"
		"With af_packet, packets of both directions are captured, as by tcpdump, and all "
		"of them count as received: the driver does not mark those that the host itself "
		"sent. A filter on addresses does ('ether src' the interface's own). On lo every "
		"packet is captured twice, when it is sent and when it is received. Packets that "
		"the kernel cannot store because the buffer is full are in the counts as missed "
		"by the NIC (ifdrop).\n\n"
		"With af_packet, time stamps are the kernel's own, in nanoseconds: a reply is "
		"later than its request by the time that it took. Packets of all interfaces and "
		"directions are in the order of these. To that end they are held for 1 ms; one "
		"that the kernel delivers later still gets the time of the packet before it. "
		"Where the system's clock is set back by more than a second, time stamps follow "
		"it. --timestamp and tcpdump -j make no difference. With af_xdp the kernel gives "
		"no time stamps: they are, as of other ports, those of the burst in which a "
		"packet came, which sleeping makes up to 0.5 ms late.\n\n"
		"With af_xdp, received packets are captured and taken away from the host; "
		"packets that the host sends are not captured. If ringtap host is killed, the "
		"host receives again; its XDP program stays on the interface and lets them pass, "
		"until the next ringtap host ends or 'ip link set IFACE xdp off'.\n"},
	{"EXAMPLES", "Watch a web server's interface and two capture ports:\n\n"
		     "  ringtap host eth0 &\n"
		     "  ringtap run -- tcpdump -nn -i ringtap:host-eth0:eth0 tcp port 443\n\n"
		     "  ringtap host --driver af_xdp --cpus 2,3 --busy-poll eth2 eth3 &\n"
		     "  ringtap record -i host-eth2-eth3: -w all.pcapng\n"},
	{"EXIT STATUS",
		"0 if a signal ended it; 1 if it could not start, or its interfaces have gone; 2 "
		"for a wrong command line.\n"},
};
/* clang-format on */

static int set(void *ctx, int id, const struct option_value *v)
{
	struct host_config *h = ctx;

	switch (id) {
	case OPT_DRIVER: h->driver = (enum host_driver)v->number; break;
	case OPT_QUEUES: h->queues = (uint32_t)v->number; break;
	case OPT_NAME: h->name = v->text; break;
	case OPT_NO_PROMISCUOUS: h->no_promiscuous = true; break;
	case OPT_CPUS: h->cpus = v->text; break;
	case OPT_BUSY: h->busy_poll = true; break;
	case OPT_BUFFER: h->buffer = v->number; break;
	case OPT_FRAME: h->frame = (uint32_t)v->number; break;
	case OPT_MEMORY: h->memory = v->number; break;
	case OPT_HUGE: h->huge_pages = true; break;
	default: h->verbose = true; break;
	}
	return 0;
}

static int add_interface(void *ctx, const char *name)
{
	struct host_config *h = ctx;

	if (h->iface_count == HOST_IFACES_MAX) {
		message_print(
			"host: %s: too many interfaces; give at most %d", name, HOST_IFACES_MAX);
		return -EINVAL;
	}
	for (unsigned i = 0; i < h->iface_count; i++) {
		if (!strcmp(h->ifaces[i], name)) {
			message_print("host: %s: given twice; leave one out", name);
			return -EINVAL;
		}
	}
	h->ifaces[h->iface_count++] = name;
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct host_config h = {.buffer = 32 << 20};
	struct host_args args = {0};
	int ret = options_parse(self, argc, argv, &h);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!h.iface_count) {
		message_print("host: no interface given; see 'ringtap host --help'");
		return STATUS_USAGE;
	}
	ret = host_check(&h);
	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	if (!host_args(&h, &args)) {
		if (h.driver == HOST_AF_XDP)
			message_print(
				"host: %s: what is received is captured and kept from the host's own "
				"network until this ends",
				h.all);
		execv(host_path(), args.argv);
		message_print(
			"host: %s: %s; install ringtap with DPDK", host_path(), strerror(errno));
	}
	host_args_free(&args);
	return STATUS_FAILED;
}

const struct command cmd_host = {
	.name = "host",
	.summary = "capture on kernel network interfaces",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "IFACE...",
	.listed = LIST_INTERFACES,
	.operand = add_interface,
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = set,
	.run = run,
};
