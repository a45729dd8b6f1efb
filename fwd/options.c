/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "frame.h"
#include "options.h"
#include "base/util.h"

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Roles"},
	{OPT_ROLE, OPTION_TEXT, 'r', "role", "ROLE:PORT[@CPU]", NULL, 0, 0,
		"What to do, on which port and CPU; may be given several times: forward:A,B (both "
		"ways), "
		"oneway:A,B (from A to B), echo:A, generate:A, sink:A. A port is a number, the "
		"name of a DPDK "
		"device, or that of an interface. Roles of one CPU take turns in one thread"},
	{OPT_PLANE, OPTION_CHOICE, 'p', "plane", "PLANE", "dpdk|packet|packet-mmap", 0, 0,
		"How packets come and go: dpdk (default), packet (a packet socket, one read() or "
		"write() each), or "
		"packet-mmap (packet socket with rings, TPACKET_V3)"},
	{OPT_SLEEP, OPTION_FLAG, 0, "sleep", NULL, NULL, 0, 0,
		"On the packet planes, sleep in poll() while there is nothing to receive, as most "
		"programs do; a "
		"role that does has its CPU for itself"},
	{OPT_MAC_SWAP, OPTION_FLAG, 0, "mac-swap", NULL, NULL, 0, 0,
		"Forward with the MAC addresses swapped"},
	{OPT_TX_FULL, OPTION_TEXT, 0, "tx-full", "POLICY", NULL, 0, 0,
		"What forwarding does with packets that the port does not take: drop (default), "
		"retry (until "
		"sent), or retry:N (N more times, then drop)"},
	{OPT_TX_FIRST, OPTION_NUMBER, 0, "tx-first", "N", NULL, 1, 1 << 20,
		"Each role that forwards begins with sending N packets, which then go round in "
		"rings"},
	{OPT_BURST, OPTION_NUMBER, 0, "burst", "N", NULL, 1, BURST_MAX,
		"Packets in a burst at most (32; on the packet plane 1, as an ordinary program "
		"does)"},
	{OPT_COUNT, OPTION_NUMBER, 'c', "count", "N", NULL, 1, UINT64_C(1) << 40,
		"Stop when each generator has sent N packets; without one, when N have been "
		"received"},
	{OPT_DURATION, OPTION_TEXT, 0, "duration", "TIME", NULL, 0, 0,
		"Stop after so long, such as 10s or 500ms; else a signal or the last of --stages "
		"ends the run"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Devices"},
	{OPT_VDEV, OPTION_TEXT, 0, "vdev", "DEVICE", NULL, 0, 0,
		"A virtual device in EAL's words, such as net_null0 or net_af_packet0,iface=eth0; "
		"may be repeated"},
	{OPT_RING, OPTION_TEXT, 0, "ring", "NAME[:SLOTS]", NULL, 0, 0,
		"A port over a ring of SLOTS packets (1024): what is sent to it is received from "
		"it; may be repeated"},
	{OPT_PCI, OPTION_TEXT, 0, "pci", "ADDRESS", NULL, 0, 0,
		"Use this PCI device; may be repeated. Without it none is touched"},
	{OPT_NO_HUGE, OPTION_FLAG, 0, "no-huge", NULL, NULL, 0, 0,
		"DPDK's own memory is ordinary pages"},
	{OPT_EAL_MB, OPTION_NUMBER, 'm', "eal-mb", "MIB", NULL, 16, 1 << 20,
		"DPDK's own memory in MiB (what the pool needs, and 64)"},
	{OPT_NAME, OPTION_TEXT, 0, "name", "NAME", NULL, 0, 0,
		"EAL's --file-prefix, by which ringtap finds the program (ringtap-fwd and its "
		"process id)"},
	{OPT_DESCRIPTORS, OPTION_NUMBER, 0, "descriptors", "N", NULL, 32, 32768,
		"Descriptors of each DPDK queue (512); frames of a ring of a packet socket"},
	{OPT_LINK_WAIT, OPTION_TEXT, 0, "link-wait", "TIME", NULL, 0, 0,
		"How long generators wait for their port's link to come up (5s)"},
	{OPT_LINGER, OPTION_TEXT, 0, "linger", "TIME", NULL, 0, 0,
		"Keep ports open so long after the report: net_memif's peer, if it still polls, "
		"may crash when "
		"when this end goes away"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Generating"},
	{OPT_FRAME, OPTION_CHOICE, 0, "frame", "KIND", "arp|udp", 0, 0,
		"Build ARP requests (default) or UDP packets"},
	{OPT_SIZES, OPTION_TEXT, 's', "sizes", "SIZES", NULL, 0, 0,
		"Bytes of frames without the check sequence: a number (60), a mix such as "
		"60x7,590x4,1514, or imix, "
		"which is that mix"},
	{OPT_PCAP, OPTION_FILE, 0, "pcap", "FILE", NULL, 0, 0,
		"Send the frames of this file, round and round, as they are"},
	{OPT_RATE, OPTION_TEXT, 0, "rate", "RATE", NULL, 0, 0,
		"Packets per second of each generator: 1 to 1G, such as 1.5M, or max (1000)"},
	{OPT_STAGES, OPTION_TEXT, 0, "stages", "RATE:TIME,...", NULL, 0, 0,
		"Rates one after the other, such as 10M:5s,15M:5s,10M:5s; then stop. A rate of 0 "
		"is a pause"},
	{OPT_POISSON, OPTION_FLAG, 0, "poisson", NULL, NULL, 0, 0,
		"Packets come at random with that mean rate, not evenly"},
	{OPT_SEED, OPTION_NUMBER, 0, "seed", "N", NULL, 0, UINT64_MAX, "Of all randomness (1)"},
	{OPT_STREAM, OPTION_NUMBER, 0, "stream", "N", NULL, 0, STAMP_STREAMS - ROLES_MAX,
		"Number in the stamps of the first generator, counted up for further ones (0): "
		"another one for each process that sends to the same sink"},
	{OPT_DST_MAC, OPTION_TEXT, 0, "dst-mac", "MAC", NULL, 0, 0,
		"Destination (ff:ff:ff:ff:ff:ff of ARP, 02:00:00:00:00:01 of UDP)"},
	{OPT_SRC_IP, OPTION_TEXT, 0, "src-ip", "ADDRESS", NULL, 0, 0, "Sender (198.18.0.1)"},
	{OPT_DST_IP, OPTION_TEXT, 0, "dst-ip", "ADDRESS", NULL, 0, 0,
		"Destination, or who is asked for (198.18.0.2)"},
	{OPT_RTT, OPTION_FLAG, 0, "rtt", NULL, NULL, 0, 0,
		"Receive the frames that come back, too, and measure their round trip"},
	{OPT_OUTSTANDING, OPTION_NUMBER, 0, "outstanding", "N", NULL, 1, 1 << 20,
		"With --rtt: at most N packets on their way; 1: one at a time"},
	{OPT_TIMEOUT, OPTION_TEXT, 0, "timeout", "TIME", NULL, 0, 0,
		"With --rtt: for so long answers are waited for, at the end or with --outstanding "
		"(1s)"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Receiving"},
	{OPT_SINK_RATE, OPTION_TEXT, 0, "sink-rate", "RATE", NULL, 0, 0,
		"Sinks take at most so many packets per second, as a wire does (max): what is "
		"before them feels "
		"back-pressure"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Memory of packets"},
	{OPT_MEMORY, OPTION_CHOICE, 0, "memory", "KIND", "dpdk|4k|thp|huge|gpu", 0, 0,
		"dpdk (DPDK's own, default), 4k (ordinary pages), thp (transparent huge pages), "
		"huge (huge pages "
		"of ours, outside DPDK's), gpu (memory of a GPU)"},
	{OPT_PAGE_SIZE, OPTION_CHOICE, 0, "page-size", "SIZE", "2M|1G", 0, 0,
		"Of --memory huge (2M)"},
	{OPT_POOL_ORDER, OPTION_CHOICE, 0, "pool-order", "ORDER", "ring|stack|shuffled", 0, 0,
		"Which free buffer is next: ring (the one free for longest, default), stack (that "
		"freed last), or "
		"shuffled (a ring in random order from the start)"},
	{OPT_POOL_SIZE, OPTION_NUMBER, 0, "pool-size", "N", NULL, 64, 1 << 26, "Buffers (8191)"},
	{OPT_POOL_CACHE, OPTION_NUMBER, 0, "pool-cache", "N", NULL, 0, 512,
		"Free buffers that each thread keeps for itself (256); 0: none, so that the order "
		"is the pool's alone"},
	{OPT_BUFFER_SIZE, OPTION_NUMBER, 0, "buffer-size", "BYTES", NULL, 256, 65280,
		"Of a packet, with 128 bytes of headroom (2176)"},

	{0, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, "Output"},
	{OPT_STATS, OPTION_NUMBER, 0, "stats", "SECONDS", NULL, 1, 3600,
		"Print rates and bursts every so many seconds"},
	{OPT_LATENCY, OPTION_NUMBER, 0, "latency", "N", NULL, 1, 1 << 30,
		"Measure the time that forwarding takes, of one burst in N"},
	{OPT_SAMPLES, OPTION_FILE, 0, "samples", "FILE", NULL, 0, 0,
		"Write the addresses of received packets' buffers to this file, as CSV"},
	{OPT_SAMPLE_EVERY, OPTION_NUMBER, 0, "sample-every", "N", NULL, 1, UINT64_C(1) << 40,
		"One packet in N (64)"},
	{OPT_SAMPLE_RUN, OPTION_NUMBER, 0, "sample-run", "N", NULL, 1, UINT64_C(1) << 40,
		"N successive packets each time (1)"},
	{OPT_SAMPLES_MAX, OPTION_NUMBER, 0, "samples-max", "N", NULL, 1, UINT64_C(1) << 28,
		"At most so many of each role (1048576)"},
	{OPT_JSON, OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print the final report as JSON"},
	{OPT_NO_PROBE, OPTION_FLAG, 0, "no-probe", NULL, NULL, 0, 0,
		"Start without the ringtap probe"},
	{OPT_VERBOSE, OPTION_FLAG, 'v', "verbose", NULL, NULL, 0, 0, "Let DPDK print its messages"},
};

static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap-fwd forwards, generates and receives packets, over DPDK ports or packet "
		"sockets, and counts and "
		"measures all of it. Every choice (plane, memory, what to do when a port is full, "
		"load) is an "
		"option.\n"
		"\n"
		"Each --role is one thing to do. Roles run on the CPU behind their @; those of one "
		"CPU take turns in one "
		"thread, a burst each. Roles without one get the allowed CPUs in turn.\n"
		"\n"
		"What stands behind -- is given to DPDK's EAL as it is. Its other arguments are "
		"made from the options: "
		"huge pages without files, no PCI devices but those of --pci, a --file-prefix that "
		"no other run has. The "
		"packet planes neither start EAL nor call DPDK.\n"
		"\n"
		"SIGINT and SIGTERM end a run; the report is printed then, and further ones wait; "
		"SIGQUIT "
		"ends it without. It also ends when the "
		"generators are done and "
		"nothing has been received for a tenth of a second, or after --duration.\n"},
	{"EXAMPLES", "Send 1.5 million packets a second for ten seconds through a forwarder and "
		     "look whether all arrive:\n"
		     "\n"
		     "  ringtap-fwd --ring a --ring b --role generate:a@0 --role oneway:a,b@1 "
		     "--role sink:b@0 "
		     "--rate 1.5M --duration 10s\n"
		     "\n"
		     "Echo what comes from an interface, by DPDK and by packet sockets, and "
		     "measure how long it stays:\n"
		     "\n"
		     "  ringtap-fwd --vdev net_af_packet0,iface=eth0 --role echo:0@1 --mac-swap "
		     "--latency 1\n"
		     "  ringtap-fwd --plane packet --role echo:eth0@1 --mac-swap --latency 1\n"
		     "\n"
		     "A million ARP requests, one at a time, and how long they travel:\n"
		     "\n"
		     "  ringtap-fwd --plane packet --role generate:eth0@0 --rate max --rtt "
		     "--outstanding 1 --count 1000000\n"
		     "\n"
		     "A wire that takes 10 million packets a second, loaded below, above and again "
		     "below that:\n"
		     "\n"
		     "  ringtap-fwd --ring a --ring b --role generate:a@0 --role oneway:a,b@1 "
		     "--role sink:b@0 "
		     "--stages 9M:5s,11M:5s,9M:5s --sink-rate 10M --memory 4k --pool-cache 0 "
		     "--samples a.csv --json\n"},
	{"COUNTS",
		"A generator's packets that were due are exactly one of: sent, refused (the "
		"port did not take them; their "
		"buffers are kept for the next ones, as a NIC keeps its own), no_buffer (the "
		"pool was empty), "
		"not_reached (the stage was over 20 ms ago), or of tx_errors (packet planes: the "
		"kernel refused it for "
		"good, such as one longer than the MTU). A sequence number is used up by being "
		"sent or by such an "
		"error.\n"
		"\n"
		"Packets that a forwarder received are exactly one of: sent, dropped, of "
		"tx_errors, or "
		"unsent (held for another try when "
		"the run was stopped).\n"
		"\n"
		"A sink's lost are the numbers below the greatest received that did not come. "
		"Duplicates and reordered "
		"packets (RFC 4737) are told apart within 65536 numbers; what comes later than "
		"that is counted as "
		"stale.\n"},
	{"EXIT STATUS",
		"0; 1 if something could not be set up or written; 2 for a wrong command line.\n"},
};
/* clang-format on */

static int operand(void *ctx, const char *text)
{
	say("%s: not an option; see 'ringtap-fwd --help'", text);
	return -EINVAL;
}

const struct command cmd_fwd = {
	.name = "fwd",
	.program = "ringtap-fwd",
	.operands = "[-- EAL options]",
	.operand = operand,
	.summary = "forward, generate and receive packets, and measure it",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = config_set,
};

const struct command *const commands[] = {&cmd_fwd, NULL};
