/* SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces of the kernel as ports of a DPDK application. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "host.h"
#include "target/probe_path.h"
#include "base/util.h"

#define TO(field) OPTION_TO(struct host_config, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to receive"},
	{TO(driver), OPTION_CHOICE, 0, "driver", "af_packet|af_xdp", "af_packet|af_xdp", 0, 0,
		"af_packet (the default): a copy of what the interface receives and sends; the "
		"host's network is not affected. af_xdp: faster, but received packets are TAKEN "
		"AWAY from the host: for ports that only capture"},
	{TO(queues), OPTION_NUMBER, 0, "queues", "N", NULL, 1, 64,
		"Receive on N queues; flows are spread over them (default: 1; with af_xdp all "
		"queues of the interface, as others are not captured)"},
	{TO(no_promiscuous), OPTION_FLAG, 'p', "no-promiscuous-mode", NULL, NULL, 0, 0,
		"Do not switch the interface to promiscuous mode: it may drop packets for other "
		"hosts"},
	{TO(name), OPTION_TEXT, 0, "name", "NAME", NULL, 0, 0,
		"Name of the application; by default host-IFACE, host-IFACE1-IFACE2 and so on"},
	{.kind = OPTION_HEADING, .help = "Resources"},
	{TO(cpus), OPTION_TEXT, 0, "cpus", "LIST", NULL, 0, 0,
		"Receive on these CPUs, as in 2,4-6, with a thread on each (default: one thread, "
		"on any CPU)"},
	{TO(busy_poll), OPTION_FLAG, 0, "busy-poll", NULL, NULL, 0, 0,
		"Never sleep: for rates of millions of packets a second (default: sleep for 50 "
		"to 500 us when no packets come)"},
	{TO(buffer), OPTION_SIZE, 0, "buffer", "SIZE", NULL, 65536, (uint64_t)1 << 30,
		"af_packet: memory per queue for packets that wait to be received (default: "
		"64M)"},
	{TO(frame), OPTION_BYTES, 0, "frame-size", "BYTES", NULL, 64, HOST_FRAME_MAX,
		"af_packet: longest packet; longer ones are cut, and recorded with their length "
		"on the wire (default: by the MTU, or 64 KiB where the kernel merges packets: "
		"GRO, LRO, TSO, GSO; see ethtool -k). Every packet takes that much of the "
		"buffer"},
	{TO(memory), OPTION_SIZE, 0, "dpdk-memory", "SIZE", NULL, 16 << 20, (uint64_t)64 << 30,
		"Memory of DPDK (default: as needed)"},
	{TO(huge_pages), OPTION_FLAG, 0, "huge-pages", NULL, NULL, 0, 0,
		"Use huge pages, which must be free (default: ordinary memory)"},
	{.kind = OPTION_HEADING, .help = "Stopping and messages"},
	{TO(duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME (default: at a signal)"},
	{TO(verbose), OPTION_FLAG, 'v', "verbose", NULL, NULL, 0, 0, "Show DPDK's messages"},
};
/* clang-format on */

static int add_interface(void *ctx, const char *name)
{
	struct host_config *h = ctx;

	if (h->iface_count == HOST_IFACES_MAX)
		return message_fail(-EINVAL, "host: %s: too many interfaces; give at most %d", name,
			HOST_IFACES_MAX);
	for (unsigned i = 0; i < h->iface_count; i++) {
		if (!strcmp(h->ifaces[i], name))
			return message_fail(-EINVAL, "host: %s: given twice; leave one out", name);
	}
	h->ifaces[h->iface_count++] = name;
	return 0;
}

/* Blocked until ringtap-host waits for it; this and the timer stay over execv(). */
static void end_after(uint64_t ns)
{
	const uint64_t us = (ns + 999) / 1000;
	const struct itimerval timer = {
		.it_value = {.tv_sec = (time_t)(us / 1000000), .tv_usec = (long)(us % 1000000)}};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct host_config h = {.buffer = 64 << 20};
	struct host_args args = {0};
	int ret = options_parse(self, argc, argv, &h);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!h.iface_count)
		return message_fail(
			STATUS_USAGE, "host: no interface given; see 'ringtap host --help'");
	ret = host_check(&h);
	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	if (!host_args(&h, &args)) {
		if (h.driver == HOST_AF_XDP)
			message_print(
				"host: %s: what is received is captured and kept from the host's own "
				"network until this ends",
				h.all);
		end_after(h.duration_ns);
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
	.run = run,
};
