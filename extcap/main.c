/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap-extcap: makes the ports of running DPDK applications interfaces of Wireshark and tshark,
 * which start it whenever they list interfaces, and to capture. Standard output must have only the
 * sentences that they expect, and all of standard error is shown as an error.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "cli/record/filter.h"
#include "base/util.h"
#include "extcap.h"

#define RING_SIZE_MIN 65536
#define RING_SIZE_MAX (UINT64_C(4) << 30)

enum {
	OPT_INTERFACES = 1,
	OPT_VERSION,
	OPT_INTERFACE,
	OPT_DLTS,
	OPT_CONFIG,
	OPT_RELOAD,
	OPT_FILTER,
	OPT_CAPTURE,
	OPT_FIFO,
	OPT_DIRECTION,
	OPT_QUEUE,
	OPT_SNAPLEN,
	OPT_RING_SIZE,
	OPT_TIMESTAMP,
};

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "Requests of Wireshark"},
	{OPT_INTERFACES, OPTION_FLAG, 0, "extcap-interfaces", NULL, NULL, 0, 0,
		"List the ports of all applications that carry the probe"},
	{OPT_VERSION, OPTION_TEXT, 0, "extcap-version", "VERSION", NULL, 0, 0,
		"Wireshark's version (ignored)"},
	{OPT_INTERFACE, OPTION_TEXT, 0, "extcap-interface", "ringtap:APP[:PORT]", NULL, 0, 0,
		"The interface for the next options; without PORT, all ports of the application, "
		"also those that appear later"},
	{OPT_DLTS, OPTION_FLAG, 0, "extcap-dlts", NULL, NULL, 0, 0, "Print its link type"},
	{OPT_CONFIG, OPTION_FLAG, 0, "extcap-config", NULL, NULL, 0, 0,
		"Print the options for capturing there"},
	{OPT_RELOAD, OPTION_TEXT, 0, "extcap-reload-option", "OPTION", NULL, 0, 0,
		"With --extcap-config: print only the current values of OPTION"},
	{OPT_FILTER, OPTION_TEXT, 0, "extcap-capture-filter", "FILTER", NULL, 0, 0,
		"Print the error in this libpcap expression, nothing if it is valid; with "
		"--capture, capture only packets that match it, see pcap-filter(7). It runs in "
		"the application, before packets are copied"},
	{OPT_CAPTURE, OPTION_FLAG, 0, "capture", NULL, NULL, 0, 0,
		"Capture until the pipe's reader closes it, a signal comes or the application "
		"ends"},
	{OPT_FIFO, OPTION_FILE, 0, "fifo", "FILE", NULL, 0, 0, "The pipe to write pcapng to"},
	{.kind = OPTION_HEADING, .help = "Options of a capture, as those of ringtap record"},
	{OPT_DIRECTION, OPTION_CHOICE, 0, "direction", "rx|tx|both", "rx|tx|both", 0, 0,
		"What the port receives, what it sends, or both (the default)"},
	{OPT_QUEUE, OPTION_TEXT, 0, "queue", "N|all", NULL, 0, 0,
		"Only this queue; all by default"},
	{OPT_SNAPLEN, OPTION_SIZE, 's', "snaplen", "BYTES", NULL, 0, RINGTAP_SNAPLEN_MAX,
		"At most so many bytes of each packet; 0, the default, means all"},
	{OPT_RING_SIZE, OPTION_TEXT, 0, "ring-size", "BYTES", NULL, 0, 0,
		"Ring of each polling thread of the application, with K, M or G"},
	{OPT_TIMESTAMP, OPTION_CHOICE, 0, "timestamp", "tsc|nic", "tsc|nic", 0, 0,
		"Time stamps of the burst (tsc, the default) or of the NIC (nic)"},
};

static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap-extcap makes the ports of running DPDK applications capture interfaces "
		"of Wireshark and tshark. They start it themselves; it is installed into the "
		"folder where they look for such programs.\n\n"
		"Interfaces are called ringtap:APP:PORT, where APP is the application's "
		"--file-prefix. ringtap:APP means all its ports. Applications must carry the "
		"probe, see ringtap(1), and Wireshark must run as the application's user or as "
		"root.\n\n"
		"Capture filters run in the application, before packets are copied. The "
		"Interface Statistics Blocks of the file (menu Statistics, Capture File "
		"Properties) have the counts of packets seen, filtered out and lost; losses are "
		"reported at the end as well.\n"},
	SECTION_OPEN_VSWITCH,
	{"EXAMPLES",
		"The list of interfaces, and two ways to use one:\n\n"
		"  tshark -D\n"
		"  tshark -i ringtap:ovs:p0 -f 'tcp port 443'\n"
		"  wireshark -k -i ringtap:ovs\n\n"
		"With options, which Wireshark offers behind the cog wheel of an interface; the "
		"key has '_' for all of the interface's name that is no letter or digit, and of "
		"the option's only the letters. tshark's own -s has no effect on capture "
		"programs: it is not passed to them, and packets from a pipe are not cut. Set "
		"snaplen instead:\n\n"
		"  tshark -o extcap.ringtap_ovs_p0.ringsize:64M -i ringtap:ovs:p0\n"
		"  tshark -o extcap.ringtap_ovs_p0.snaplen:96 -i ringtap:ovs:p0\n"},
	{"FILES", "Wireshark looks for it in the folder that Help, About, Folders calls the "
		  "extcap path, or in the one that the environment variable WIRESHARK_EXTCAP_DIR "
		  "names. To use it from a build folder:\n\n"
		  "  WIRESHARK_EXTCAP_DIR=$PWD/build/extcap tshark -D\n\n"
		  "Root's Wireshark does not heed that variable; a link in its folder serves "
		  "then. Wireshark 4.2 and later look into ~/.local/lib/wireshark/extcap as "
		  "well.\n"},
	{"EXIT STATUS",
		"0: the request was answered, or the capture ended by the reader of the pipe, a "
		"signal or the end of the application. 1: attaching or writing failed. 2: a "
		"wrong command line.\n"},
};
/* clang-format on */

static int set_queue(struct extcap *e, const char *text)
{
	uint64_t n;

	e->queue = -1;
	if (!strcmp(text, "all"))
		return 0;
	if (parse_number(text, UINT16_MAX, &n)) {
		message_print(
			"extcap: --queue %s: not a queue; give 0 to %d, or all", text, UINT16_MAX);
		return -EINVAL;
	}
	e->queue = (int)n;
	return 0;
}

/* Wireshark's field may be left empty. */
static int set_ring_size(struct extcap *e, const char *text)
{
	e->ring_size = 0;
	if (!*text || (!parse_size(text, &e->ring_size) && e->ring_size >= RING_SIZE_MIN &&
			      e->ring_size <= RING_SIZE_MAX))
		return 0;
	message_print("extcap: --ring-size %s: not a size; give 64K to 4G", text);
	return -EINVAL;
}

static int set(void *ctx, int id, const struct option_value *v)
{
	static const unsigned directions[] = {RINGTAP_RX, RINGTAP_TX, RINGTAP_RX | RINGTAP_TX};
	struct extcap *e = ctx;

	switch (id) {
	case OPT_INTERFACES: e->interfaces = true; break;
	case OPT_INTERFACE: e->interface = v->text; break;
	case OPT_DLTS: e->dlts = true; break;
	case OPT_CONFIG: e->config = true; break;
	case OPT_RELOAD: e->reload = v->text; break;
	case OPT_FILTER: e->filter = v->text; break;
	case OPT_CAPTURE: e->capture = true; break;
	case OPT_FIFO: e->fifo = v->text; break;
	case OPT_DIRECTION: e->directions = directions[v->number]; break;
	case OPT_QUEUE: return set_queue(e, v->text);
	case OPT_SNAPLEN: e->snaplen = (uint32_t)v->number; break;
	case OPT_RING_SIZE: return set_ring_size(e, v->text);
	case OPT_TIMESTAMP: e->timestamp = v->number ? RINGTAP_NIC : RINGTAP_TSC; break;
	default: break;
	}
	return 0;
}

static const struct command cmd_extcap = {
	.name = "extcap",
	.program = "ringtap-extcap",
	.summary = "ports of DPDK applications as interfaces of Wireshark",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = set,
};

/* Wireshark shows the output as the error in the filter. */
static int check_filter(const char *expression)
{
	struct filter f;
	char err[512] = "not enough memory";

	if (filter_compile(&f, expression, err, sizeof(err)))
		puts(err);
	filter_free(&f);
	return STATUS_OK;
}

static int check_interface(const struct extcap *e)
{
	size_t len = strlen(EXTCAP_SCHEME);

	if (e->interface && !strncmp(e->interface, EXTCAP_SCHEME, len) && e->interface[len])
		return 0;
	message_print(
		"extcap: %s: not an interface of ours; see 'ringtap-extcap --extcap-interfaces'",
		e->interface ? e->interface : "no --extcap-interface given");
	return -EINVAL;
}

static int answer(const struct extcap *e)
{
	if (e->interfaces)
		return print_interfaces();
	if (check_interface(e))
		return STATUS_USAGE;
	if (e->dlts)
		return print_dlts();
	if (e->config)
		return print_config(e);
	if (e->capture && e->fifo)
		return capture(e);
	if (e->filter && !e->capture)
		return check_filter(e->filter);
	message_print(
		"extcap: nothing to do; give --extcap-dlts, --extcap-config, or --capture and --fifo");
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	struct extcap e = {.queue = -1};
	int ret;

	/* For the build only, so in no help. */
	if (argc == 3 && !strcmp(argv[1], "--generate"))
		return generate_man(argv[2], &cmd_extcap) ? STATUS_FAILED : STATUS_OK;
	if (argc == 1) {
		options_help(&cmd_extcap);
		return STATUS_USAGE;
	}
	ret = options_parse(&cmd_extcap, argc, argv, &e);
	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	ret = answer(&e);
	if (fflush(stdout) && !ret)
		ret = STATUS_FAILED;
	return ret;
}
