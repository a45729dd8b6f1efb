/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "frame.h"
#include "options.h"
#include "base/util.h"

#define TO(field) OPTION_TO(struct fwd_config, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{OPTION_SET(0), OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Roles"},
	{OPTION_SET(OPT_ROLE), OPTION_TEXT, 0, "role", "ROLE:PORT[@CPU]", NULL, 0, 0,
		"Run a role on a port and CPU; may be repeated: forward:A,B (both ways), "
		"oneway:A,B (from A to B), echo:A, generate:A, sink:A. A port is a number, the "
		"name of a DPDK device or the name of an interface. Roles of the same CPU share "
		"one thread"},
	{TO(plane), OPTION_CHOICE, 0, "plane", "PLANE", "dpdk|packet|packet-mmap", 0, 0,
		"Way to send and receive: dpdk (the default), packet (packet socket, one read() or "
		"write() per packet), or packet-mmap (packet socket with rings, TPACKET_V3)"},
	{TO(sleep), OPTION_FLAG, 0, "sleep", NULL, NULL, 0, 0,
		"Sleep in poll() while there is nothing to receive (packet planes only). Each "
		"role then needs a CPU of its own"},
	{TO(mac_swap), OPTION_FLAG, 0, "mac-swap", NULL, NULL, 0, 0,
		"Swap the MAC addresses of forwarded packets"},
	{TO(work_ns), OPTION_TIME, 0, "work", "TIME", NULL, ANY_TIME,
		"Keep the CPU busy for TIME for each forwarded packet, between receiving and "
		"sending, as an application does (default: 0)"},
	{OPTION_SET(OPT_TX_FULL), OPTION_TEXT, 0, "tx-full", "POLICY", NULL, 0, 0,
		"Policy for forwarded packets that the port does not accept: drop (the default), "
		"retry (until sent), or retry:N (N more tries, then drop)"},
	{TO(tx_first), OPTION_NUMBER, 0, "tx-first", "N", NULL, 1, 1 << 20,
		"Send N packets from each forwarding role at the start; they circulate if ports "
		"form a loop"},
	{TO(burst), OPTION_NUMBER, 0, "burst", "N", NULL, 1, BURST_MAX,
		"Maximum packets in a burst (default: 32; 1 on the packet plane)"},
	{TO(count), OPTION_NUMBER, 'c', "packets", "N", NULL, 1, UINT64_C(1) << 40,
		"Stop after each generator has sent N packets; without a generator, after N "
		"received packets"},
	{TO(duration_ns), OPTION_TIME, 0, "duration", "TIME", NULL, SOME_TIME,
		"Stop after TIME (default: at a signal or at the end of "
		"--stages)"},

	{OPTION_SET(0), OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Devices"},
	{OPTION_SET(OPT_VDEV), OPTION_TEXT, 0, "vdev", "DEVICE", NULL, 0, 0,
		"Create a virtual device, in the syntax of EAL's --vdev, such as net_null0 or "
		"net_af_packet0,iface=eth0; may be repeated"},
	{OPTION_SET(OPT_RING), OPTION_TEXT, 0, "ring", "NAME[:SLOTS]", NULL, 0, 0,
		"Create a port on a ring of SLOTS packets (default: 1024): packets sent to the port are "
		"received from it; may be repeated"},
	{OPTION_SET(OPT_PCI), OPTION_TEXT, 0, "pci", "ADDRESS", NULL, 0, 0,
		"Use this PCI device (default: none); may be repeated"},
	{TO(no_huge), OPTION_FLAG, 0, "no-huge", NULL, NULL, 0, 0,
		"Use ordinary pages for DPDK's own memory"},
	{TO(eal_bytes), OPTION_SIZE, 0, "dpdk-memory", "SIZE", NULL, 16 << 20, UINT64_C(1) << 40,
		"DPDK's own memory, in whole MiB (default: size of the pool plus 64M)"},
	{OPTION_SET(OPT_NAME), OPTION_TEXT, 0, "name", "NAME", NULL, 0, 0,
		"EAL's --file-prefix, the application name in ringtap (default: ringtap-fwd-PID)"},
	{TO(descriptors), OPTION_NUMBER, 0, "descriptors", "N", NULL, 32, 32768,
		"Descriptors of each DPDK queue, or frames of a packet socket's ring (default: 512)"},
	{TO(link_ns), OPTION_TIME, 0, "link-wait", "TIME", NULL, ANY_TIME,
		"Maximum time that a generator waits for the link of its port (default: 5s)"},
	{TO(linger_ns), OPTION_TIME, 0, "linger", "TIME", NULL, ANY_TIME,
		"Keep ports open for TIME after the report (default: 0). A peer of net_memif that still "
		"polls may crash when this end closes"},

	{OPTION_SET(0), OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Generating"},
	{TO(frame), OPTION_CHOICE, 0, "frame", "KIND", "arp|udp", 0, 0,
		"Build ARP requests (the default) or UDP packets"},
	{OPTION_SET(OPT_SIZES), OPTION_TEXT, 0, "sizes", "SIZES", NULL, 0, 0,
		"Frame sizes in bytes without the check sequence: a number (default: 60), a mix such as "
		"60x7,590x4,1514, or imix, which is this mix"},
	{TO(pcap), OPTION_FILE, 0, "replay", "FILE", NULL, 0, 0,
		"Send the frames of this file unchanged, in a loop"},
	{TO(timing), OPTION_FLAG, 0, "timing", NULL, NULL, 0, 0,
		"Send the frames of --replay at the times that they have in the file, once; with "
		"--packets as often as that needs, a mean gap between the rounds. The report has "
		"how late each was sent"},
	{OPTION_SET(OPT_RATE), OPTION_TEXT, 0, "rate", "RATE", NULL, 0, 0,
		"Packets per second of each generator: 1 to 1G, such as 1.5M, or max (default: 1000)"},
	{OPTION_SET(OPT_STAGES), OPTION_TEXT, 0, "stages", "RATE:TIME,...", NULL, 0, 0,
		"Sequence of rates, such as 10M:5s,15M:5s,10M:5s, then stop. A rate of 0 is a "
		"pause"},
	{TO(poisson), OPTION_FLAG, 0, "poisson", NULL, NULL, 0, 0,
		"Send packets at random times (Poisson process) with the given mean rate"},
	{TO(seed), OPTION_NUMBER, 0, "seed", "N", NULL, 0, UINT64_MAX,
		"Seed of the random numbers (default: 1)"},
	{TO(stream), OPTION_NUMBER, 0, "stream", "N", NULL, 0, STAMP_STREAMS - ROLES_MAX,
		"Stream number of the first generator (default: 0), incremented for each further one. "
		"Processes that send to the same sink need different numbers"},
	{OPTION_SET(OPT_DST_MAC), OPTION_TEXT, 0, "dst-mac", "MAC", NULL, 0, 0,
		"Destination MAC address (default: for ARP ff:ff:ff:ff:ff:ff, for UDP 02:00:00:00:00:01)"},
	{OPTION_SET(OPT_SRC_IP), OPTION_TEXT, 0, "src-ip", "ADDRESS", NULL, 0, 0,
		"Source IPv4 address (default: 198.18.0.1)"},
	{OPTION_SET(OPT_DST_IP), OPTION_TEXT, 0, "dst-ip", "ADDRESS", NULL, 0, 0,
		"Destination IPv4 address, or target address of ARP requests (default: 198.18.0.2)"},
	{TO(rtt), OPTION_FLAG, 0, "rtt", NULL, NULL, 0, 0,
		"Receive returned frames and measure their round-trip time"},
	{TO(outstanding), OPTION_NUMBER, 0, "outstanding", "N", NULL, 1, 1 << 20,
		"Maximum packets in flight, with --rtt (default: no limit)"},
	{TO(timeout_ns), OPTION_TIME, 0, "timeout", "TIME", NULL, SOME_TIME,
		"Maximum time to wait for replies, with --rtt: at the end of the run, and for "
		"each packet with --outstanding (default: 1s)"},

	{OPTION_SET(0), OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Receiving"},
	{OPTION_SET(OPT_SINK_RATE), OPTION_TEXT, 0, "sink-rate", "RATE", NULL, 0, 0,
		"Limit sinks to RATE packets per second (default: max), as a wire does: excess load "
		"causes back-pressure. The report then has the time that it takes them to "
		"receive and free a packet"},

	{OPTION_SET(0), OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Memory of packets"},
	{TO(memory), OPTION_CHOICE, 0, "pool-memory", "KIND",
		"dpdk|4k|thp|huge|gpu|gpu-managed|gpu-pinned", 0, 0,
		"Memory of the packet buffers: dpdk (DPDK's own, the default), 4k (ordinary pages), "
		"thp (transparent huge pages), huge (huge pages outside DPDK's own), gpu (memory "
		"of a GPU, which no role accesses), gpu-managed (memory that GPU and CPU share), "
		"gpu-pinned (of the CPU, which the GPU reads where it is)"},
	{OPTION_SET(OPT_PAGE_SIZE), OPTION_CHOICE, 0, "page-size", "SIZE", "2M|1G", 0, 0,
		"Page size of --pool-memory huge (default: 2M)"},
	{TO(order), OPTION_CHOICE, 0, "pool-order", "ORDER", "ring|stack|shuffled", 0, 0,
		"Order in which the pool hands out free buffers: ring (first freed first, "
		"default), stack (last freed first), or shuffled (a ring in random initial order)"},
	{TO(pool_size), OPTION_NUMBER, 0, "pool-size", "N", NULL, 64, 1 << 26,
		"Number of buffers (default: 8191)"},
	{TO(pool_cache), OPTION_NUMBER, 0, "pool-cache", "N", NULL, 0, 512,
		"Size of each thread's cache of free buffers (default: 256); 0 leaves the order to the "
		"pool"},
	{TO(buffer_size), OPTION_BYTES, 0, "mbuf-size", "BYTES", NULL, 256, 65280,
		"Size of a buffer with its headroom of 128 bytes (default: 2176)"},

	{OPTION_SET(0), OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Output"},
	{TO(stats_ns), OPTION_TIME, 0, "interval", "TIME", NULL, NS_PER_S, 3600 * NS_PER_S,
		"Print rates and burst sizes each TIME, 1s to 1h"},
	{TO(latency), OPTION_NUMBER, 0, "latency-sample", "N", NULL, 1, 1 << 30,
		"Measure the forwarding time of one burst in N"},
	{TO(samples), OPTION_FILE, 0, "samples", "FILE", NULL, 0, 0,
		"Write the buffer addresses of received packets to this file, as CSV"},
	{TO(sample_every), OPTION_NUMBER, 0, "sample", "N", NULL, 1, UINT64_C(1) << 40,
		"Sampling interval in packets (default: 64)"},
	{TO(sample_run), OPTION_NUMBER, 0, "sample-run", "N", NULL, 1, UINT64_C(1) << 40,
		"Successive packets in each sampling interval (default: 1)"},
	{TO(samples_max), OPTION_NUMBER, 0, "max-samples", "N", NULL, 1, UINT64_C(1) << 28,
		"Maximum samples of each role (default: 1048576)"},
	{TO(json), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print the final report as JSON"},
	{TO(no_probe), OPTION_FLAG, 0, "no-probe", NULL, NULL, 0, 0,
		"Run without the ringtap probe"},
	{TO(verbose), OPTION_FLAG, 'v', "verbose", NULL, NULL, 0, 0, "Print DPDK's messages"},
};
/* clang-format on */

static int operand(void *ctx, const char *text)
{
	return message_fail(-EINVAL, "unexpected argument '%s'; see 'ringtap-fwd --help'", text);
}

const struct command cmd_fwd = {
	.name = "fwd",
	.program = "ringtap-fwd",
	.operands = "[-- EAL options]",
	.operand = operand,
	.summary = "forward, generate and receive packets, and measure them",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.set = config_set,
};
