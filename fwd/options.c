/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "frame.h"
#include "options.h"
#include "base/util.h"

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Roles"},
	{OPT_ROLE, OPTION_TEXT, 'r', "role", "ROLE:PORT[@CPU]", NULL, 0, 0,
		"Run a role on a port and CPU; may be repeated: forward:A,B (both ways), "
		"oneway:A,B (from A to B), echo:A, generate:A, sink:A. A port is a number, the "
		"name of a DPDK device or the name of an interface. Roles of the same CPU share "
		"one thread"},
	{OPT_PLANE, OPTION_CHOICE, 'p', "plane", "PLANE", "dpdk|packet|packet-mmap", 0, 0,
		"Way to send and receive: dpdk (default), packet (packet socket, one read() or "
		"write() per packet), or packet-mmap (packet socket with rings, TPACKET_V3)"},
	{OPT_SLEEP, OPTION_FLAG, 0, "sleep", NULL, NULL, 0, 0,
		"Sleep in poll() while there is nothing to receive (packet planes only). Each "
		"role then needs a CPU of its own"},
	{OPT_MAC_SWAP, OPTION_FLAG, 0, "mac-swap", NULL, NULL, 0, 0,
		"Swap the MAC addresses of forwarded packets"},
	{OPT_TX_FULL, OPTION_TEXT, 0, "tx-full", "POLICY", NULL, 0, 0,
		"Policy for forwarded packets that the port does not accept: drop (default), "
		"retry (until sent), or retry:N (N more tries, then drop)"},
	{OPT_TX_FIRST, OPTION_NUMBER, 0, "tx-first", "N", NULL, 1, 1 << 20,
		"Send N packets from each forwarding role at the start; they circulate if ports "
		"form a loop"},
	{OPT_BURST, OPTION_NUMBER, 0, "burst", "N", NULL, 1, BURST_MAX,
		"Maximum packets in a burst (32; 1 on the packet plane)"},
	{OPT_COUNT, OPTION_NUMBER, 'c', "count", "N", NULL, 1, UINT64_C(1) << 40,
		"Stop after each generator has sent N packets; without a generator, after N "
		"received packets"},
	{OPT_DURATION, OPTION_TEXT, 0, "duration", "TIME", NULL, 0, 0,
		"Stop after TIME, such as 10s or 500ms (default: at a signal or at the end of "
		"--stages)"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Devices"},
	{OPT_VDEV, OPTION_TEXT, 0, "vdev", "DEVICE", NULL, 0, 0,
		"Create a virtual device, in the syntax of EAL's --vdev, such as net_null0 or "
		"net_af_packet0,iface=eth0; may be repeated"},
	{OPT_RING, OPTION_TEXT, 0, "ring", "NAME[:SLOTS]", NULL, 0, 0,
		"Create a port on a ring of SLOTS packets (1024): packets sent to the port are "
		"received from it; may be repeated"},
	{OPT_PCI, OPTION_TEXT, 0, "pci", "ADDRESS", NULL, 0, 0,
		"Use this PCI device (default: none); may be repeated"},
	{OPT_NO_HUGE, OPTION_FLAG, 0, "no-huge", NULL, NULL, 0, 0,
		"Use ordinary pages for DPDK's own memory"},
	{OPT_EAL_MB, OPTION_NUMBER, 'm', "eal-mb", "MIB", NULL, 16, 1 << 20,
		"Size of DPDK's own memory in MiB (size of the pool plus 64)"},
	{OPT_NAME, OPTION_TEXT, 0, "name", "NAME", NULL, 0, 0,
		"EAL's --file-prefix, the application name in ringtap (ringtap-fwd-PID)"},
	{OPT_DESCRIPTORS, OPTION_NUMBER, 0, "descriptors", "N", NULL, 32, 32768,
		"Descriptors of each DPDK queue, or frames of a packet socket's ring (512)"},
	{OPT_LINK_WAIT, OPTION_TEXT, 0, "link-wait", "TIME", NULL, 0, 0,
		"Maximum time that a generator waits for the link of its port (5s)"},
	{OPT_LINGER, OPTION_TEXT, 0, "linger", "TIME", NULL, 0, 0,
		"Keep ports open for TIME after the report (0). A peer of net_memif that still "
		"polls may crash when this end closes"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Generating"},
	{OPT_FRAME, OPTION_CHOICE, 0, "frame", "KIND", "arp|udp", 0, 0,
		"Build ARP requests (default) or UDP packets"},
	{OPT_SIZES, OPTION_TEXT, 's', "sizes", "SIZES", NULL, 0, 0,
		"Frame sizes in bytes without the check sequence: a number (60), a mix such as "
		"60x7,590x4,1514, or imix, which is this mix"},
	{OPT_PCAP, OPTION_FILE, 0, "pcap", "FILE", NULL, 0, 0,
		"Send the frames of this file unchanged, in a loop"},
	{OPT_RATE, OPTION_TEXT, 0, "rate", "RATE", NULL, 0, 0,
		"Packets per second of each generator: 1 to 1G, such as 1.5M, or max (1000)"},
	{OPT_STAGES, OPTION_TEXT, 0, "stages", "RATE:TIME,...", NULL, 0, 0,
		"Sequence of rates, such as 10M:5s,15M:5s,10M:5s, then stop. A rate of 0 is a "
		"pause"},
	{OPT_POISSON, OPTION_FLAG, 0, "poisson", NULL, NULL, 0, 0,
		"Send packets at random times (Poisson process) with the given mean rate"},
	{OPT_SEED, OPTION_NUMBER, 0, "seed", "N", NULL, 0, UINT64_MAX,
		"Seed of the random numbers (1)"},
	{OPT_STREAM, OPTION_NUMBER, 0, "stream", "N", NULL, 0, STAMP_STREAMS - ROLES_MAX,
		"Stream number of the first generator (0), incremented for each further one. "
		"Processes that send to the same sink need different numbers"},
	{OPT_DST_MAC, OPTION_TEXT, 0, "dst-mac", "MAC", NULL, 0, 0,
		"Destination MAC address (ARP: ff:ff:ff:ff:ff:ff, UDP: 02:00:00:00:00:01)"},
	{OPT_SRC_IP, OPTION_TEXT, 0, "src-ip", "ADDRESS", NULL, 0, 0,
		"Source IPv4 address (198.18.0.1)"},
	{OPT_DST_IP, OPTION_TEXT, 0, "dst-ip", "ADDRESS", NULL, 0, 0,
		"Destination IPv4 address, or target address of ARP requests (198.18.0.2)"},
	{OPT_RTT, OPTION_FLAG, 0, "rtt", NULL, NULL, 0, 0,
		"Receive returned frames and measure their round-trip time"},
	{OPT_OUTSTANDING, OPTION_NUMBER, 0, "outstanding", "N", NULL, 1, 1 << 20,
		"Maximum packets in flight, with --rtt (no limit)"},
	{OPT_TIMEOUT, OPTION_TEXT, 0, "timeout", "TIME", NULL, 0, 0,
		"Maximum time to wait for replies, with --rtt: at the end of the run, and for "
		"each packet with --outstanding (1s)"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Receiving"},
	{OPT_SINK_RATE, OPTION_TEXT, 0, "sink-rate", "RATE", NULL, 0, 0,
		"Limit sinks to RATE packets per second (max), as a wire does: excess load "
		"causes back-pressure"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Memory of packets"},
	{OPT_MEMORY, OPTION_CHOICE, 0, "memory", "KIND", "dpdk|4k|thp|huge|gpu", 0, 0,
		"Memory of the packet buffers: dpdk (DPDK's own, default), 4k (ordinary pages), "
		"thp (transparent huge pages), huge (huge pages outside DPDK's own), gpu (GPU "
		"memory)"},
	{OPT_PAGE_SIZE, OPTION_CHOICE, 0, "page-size", "SIZE", "2M|1G", 0, 0,
		"Page size of --memory huge (2M)"},
	{OPT_POOL_ORDER, OPTION_CHOICE, 0, "pool-order", "ORDER", "ring|stack|shuffled", 0, 0,
		"Order in which the pool hands out free buffers: ring (first freed first, "
		"default), stack (last freed first), or shuffled (a ring in random initial order)"},
	{OPT_POOL_SIZE, OPTION_NUMBER, 0, "pool-size", "N", NULL, 64, 1 << 26,
		"Number of buffers (8191)"},
	{OPT_POOL_CACHE, OPTION_NUMBER, 0, "pool-cache", "N", NULL, 0, 512,
		"Size of each thread's cache of free buffers (256); 0 leaves the order to the "
		"pool"},
	{OPT_BUFFER_SIZE, OPTION_NUMBER, 0, "buffer-size", "BYTES", NULL, 256, 65280,
		"Size of a buffer with its headroom of 128 bytes (2176)"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Output"},
	{OPT_STATS, OPTION_NUMBER, 0, "stats", "SECONDS", NULL, 1, 3600,
		"Print rates and burst sizes every SECONDS seconds"},
	{OPT_LATENCY, OPTION_NUMBER, 0, "latency", "N", NULL, 1, 1 << 30,
		"Measure the forwarding time of one burst in N"},
	{OPT_SAMPLES, OPTION_FILE, 0, "samples", "FILE", NULL, 0, 0,
		"Write the buffer addresses of received packets to this file, as CSV"},
	{OPT_SAMPLE_EVERY, OPTION_NUMBER, 0, "sample-every", "N", NULL, 1, UINT64_C(1) << 40,
		"Sampling interval in packets (64)"},
	{OPT_SAMPLE_RUN, OPTION_NUMBER, 0, "sample-run", "N", NULL, 1, UINT64_C(1) << 40,
		"Successive packets in each sampling interval (1)"},
	{OPT_SAMPLES_MAX, OPTION_NUMBER, 0, "samples-max", "N", NULL, 1, UINT64_C(1) << 28,
		"Maximum samples of each role (1048576)"},
	{OPT_JSON, OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print the final report as JSON"},
	{OPT_NO_PROBE, OPTION_FLAG, 0, "no-probe", NULL, NULL, 0, 0,
		"Run without the ringtap probe"},
	{OPT_VERBOSE, OPTION_FLAG, 'v', "verbose", NULL, NULL, 0, 0, "Print DPDK's messages"},
};

static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap-fwd forwards, generates and receives packets over DPDK ports or packet "
		"sockets. It counts all packets and measures latency. The plane, the memory, the "
		"policy for full ports and the load are options.\n\n"
		"Each --role adds a role. A role runs on the CPU given behind @. Roles of the "
		"same CPU share one thread, which polls them in turn, one burst each. Roles "
		"without a CPU are assigned to the allowed CPUs in turn.\n\n"
		"Arguments behind -- are passed to DPDK's EAL unchanged. The other EAL arguments "
		"follow from the options: huge pages without files, no PCI devices but those of "
		"--pci, and a unique --file-prefix. The packet planes do not start EAL and do "
		"not call DPDK.\n\n"
		"A run ends at SIGINT, SIGTERM or SIGHUP, after --duration, or when all "
		"generators are done and nothing has been received for a tenth of a second. The "
		"report is then printed; further signals do not interrupt it. SIGQUIT ends the "
		"run without a report.\n"},
	{"EXAMPLES",
		"Send 1.5 million packets per second through a forwarder for ten seconds and "
		"check that all arrive:\n\n"
		"  ringtap-fwd --ring a --ring b --role generate:a@0 --role oneway:a,b@1 --role "
		"sink:b@0 --rate 1.5M --duration 10s\n\n"
		"Send packets of an interface back, with DPDK and with packet sockets, and "
		"measure the time in the forwarder:\n\n"
		"  ringtap-fwd --vdev net_af_packet0,iface=eth0 --role echo:0@1 --mac-swap "
		"--latency 1\n"
		"  ringtap-fwd --plane packet --role echo:eth0@1 --mac-swap --latency 1\n\n"
		"Send a million ARP requests, one at a time, and measure the round-trip times:\n"
		"\n"
		"  ringtap-fwd --plane packet --role generate:eth0@0 --rate max --rtt "
		"--outstanding 1 --count 1000000\n\n"
		"Load a wire of 10 million packets per second below, above and again below its "
		"rate:\n\n"
		"  ringtap-fwd --ring a --ring b --role generate:a@0 --role oneway:a,b@1 --role "
		"sink:b@0 --stages 9M:5s,11M:5s,9M:5s --sink-rate 10M --memory 4k --pool-cache 0 "
		"--samples a.csv --json\n"},
	{"COUNTS",
		"Each packet that was due in a generator is counted once: as sent; as "
		"tx_refused (the port did not accept it; the generator keeps the buffer for the next "
		"packet, as a NIC keeps its descriptor); as tx_nombuf (the pool was empty); as "
		"tx_expired (the stage ended more than 20 ms before); or as tx_errors (packet "
		"planes: the kernel rejected it permanently, for example because it is longer "
		"than the MTU). Only sent packets and such errors consume a sequence number.\n\n"
		"Each packet that a forwarder received is counted once: as sent, as dropped, as "
		"tx_errors, or as unsent (held for another try when the run ended).\n\n"
		"A sink counts as lost the sequence numbers below the greatest received one that "
		"did not arrive. Duplicates and reordered packets (RFC 4737) are distinguished "
		"within 65536 numbers; packets that arrive later than that are counted as "
		"stale.\n"},
	{"EXIT STATUS",
		"0 on success; 1 if setting up or writing failed; 2 for a wrong command line.\n"},
};
/* clang-format on */

static int operand(void *ctx, const char *text)
{
	message_print("unexpected argument '%s'; see 'ringtap-fwd --help'", text);
	return -EINVAL;
}

const struct command cmd_fwd = {
	.name = "fwd",
	.program = "ringtap-fwd",
	.operands = "[-- EAL options]",
	.operand = operand,
	.summary = "forward, generate and receive packets, and measure them",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = config_set,
};

const struct command *const commands[] = {&cmd_fwd, NULL};
