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
#include "packet/inner.h"
#include "base/util.h"
#include "cli/record/config.h"
#include "extcap.h"

enum {
	OPT_VERSION = 1,
	OPT_DIRECTION,
	OPT_QUEUE,
	OPT_BUFFER,
	OPT_TIMESTAMP,
	OPT_IDS,
};

#define TO(field) OPTION_TO(struct extcap, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "Requests of Wireshark"},
	{TO(interfaces), OPTION_FLAG, 0, "extcap-interfaces", NULL, NULL, 0, 0,
		"List the ports of all applications that carry the probe"},
	{OPTION_SET(OPT_VERSION), OPTION_TEXT, 0, "extcap-version", "VERSION", NULL, 0, 0,
		"Wireshark's version (ignored)"},
	{TO(interface), OPTION_TEXT, 0, "extcap-interface", "ringtap:APP[:PORT]|ringtap-ssh", NULL,
		0, 0,
		"The interface for the next options; without PORT, all ports of the application, "
		"also those that appear later; ringtap-ssh: ports of another host"},
	{TO(dlts), OPTION_FLAG, 0, "extcap-dlts", NULL, NULL, 0, 0, "Print its link type"},
	{TO(config), OPTION_FLAG, 0, "extcap-config", NULL, NULL, 0, 0,
		"Print the options for capturing there"},
	{TO(reload), OPTION_TEXT, 0, "extcap-reload-option", "OPTION", NULL, 0, 0,
		"With --extcap-config: print only the current values of OPTION"},
	{TO(filter), OPTION_TEXT, 0, "extcap-capture-filter", "FILTER", NULL, 0, 0,
		"Print the error in this libpcap expression, nothing if it is valid; with "
		"--capture, capture only packets that match it, see pcap-filter(7). It runs in "
		"the application, before packets are copied"},
	{TO(capture), OPTION_FLAG, 0, "capture", NULL, NULL, 0, 0,
		"Capture until the pipe's reader closes it, a signal comes or the application "
		"ends"},
	{TO(fifo), OPTION_FILE, 0, "fifo", "FILE", NULL, 0, 0, "The pipe to write pcapng to"},
	{.kind = OPTION_HEADING, .help = "Options of a capture, as those of ringtap record"},
	{OPTION_SET(OPT_DIRECTION), OPTION_CHOICE, 0, "direction", "rx|tx|both", "rx|tx|both", 0, 0,
		"What the port receives, what it sends, or both (the default)"},
	{OPTION_SET(OPT_QUEUE), OPTION_TEXT, 0, "queue", "N|all", NULL, 0, 0,
		"Only this queue; all by default"},
	{TO(snaplen), OPTION_BYTES, 's', "snapshot-length", "BYTES", NULL, 0, RINGTAP_SNAPLEN_MAX,
		"Largest number of bytes of each packet (default: 0, all)"},
	{OPTION_SET(OPT_BUFFER), OPTION_TEXT, 0, "buffer", "SIZE", NULL, 0, 0,
		"Memory for the packets of the application (default: as record's)"},
	{OPTION_SET(OPT_TIMESTAMP), OPTION_CHOICE, 0, "timestamp", "tsc|nic", "tsc|nic", 0, 0,
		"Time stamps of the burst (tsc, the default) or of the NIC (nic)"},
	{OPTION_SET(OPT_IDS), OPTION_FLAG, 0, "ids", NULL, NULL, 0, 0,
		"Give packets ids (frame.packet_id): what is sent of a received one has the same"},
	SAMPLE_OPTION(struct extcap, sample),
	TAGS_OPTION(struct extcap, tags),
	INNER_OPTION(struct extcap, inner),
	{TO(cut), OPTION_TEXT, 0, "cut", CUT_ARG, NULL, 0, 0,
		"Capture of each packet only its headers, with l4+N also N bytes behind them, or "
		"N bytes"},
	{TO(first), OPTION_TEXT, 0, "first", FIRST_ARG, NULL, 0, 0,
		"Capture the first SIZE bytes or N packets of each flow in each direction"},
	{.kind = OPTION_HEADING, .help = "The other host, with the interface ringtap-ssh"},
	{TO(remote_host), OPTION_TEXT, 0, "host", "HOST", NULL, 0, 0, "Its name, as for ssh(1)"},
	{TO(remote_port), OPTION_TEXT, 0, "ssh-port", "PORT", NULL, 0, 0,
		"Port of its SSH server (default: as ssh(1) is configured, as the next two)"},
	{TO(remote_user), OPTION_TEXT, 0, "user", "NAME", NULL, 0, 0, "User there"},
	{TO(remote_key), OPTION_TEXT, 0, "key", "FILE", NULL, 0, 0, "Private key"},
	{TO(remote_target), OPTION_TEXT, 0, "target", "APP[:PORT]", NULL, 0, 0,
		"Application or port there (default: all ports of the only application)"},
};
/* clang-format on */

static int set_queue(struct extcap *e, const char *text)
{
	uint64_t n;

	e->queue = -1;
	if (!strcmp(text, "all"))
		return 0;
	if (parse_number(text, UINT16_MAX, &n))
		return message_fail(-EINVAL,
			"extcap: --queue %s: not a queue; give 0 to %d, or all", text, UINT16_MAX);
	e->queue = (int)n;
	return 0;
}

/* Wireshark's field may be left empty. */
static int set_buffer(struct extcap *e, const char *text)
{
	e->buffer_size = 0;
	if (!*text || (!parse_size(text, 0, &e->buffer_size) && e->buffer_size >= BUFFER_MIN &&
			      e->buffer_size <= BUFFER_MAX))
		return 0;
	return message_fail(
		-EINVAL, "extcap: --buffer %s: not a size with a unit; give 64K to 64G", text);
}

static int set(void *ctx, int id, const struct option_value *v)
{
	static const unsigned directions[] = {RINGTAP_RX, RINGTAP_TX, RINGTAP_RX | RINGTAP_TX};
	struct extcap *e = ctx;

	switch (id) {
	case OPT_DIRECTION: e->directions = directions[v->number]; break;
	case OPT_QUEUE: return set_queue(e, v->text);
	case OPT_BUFFER: return set_buffer(e, v->text);
	case OPT_TIMESTAMP: e->timestamp = v->number ? RINGTAP_NIC : RINGTAP_TSC; break;
	case OPT_IDS: e->ids = RINGTAP_IDS; break;
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
	.set = set,
};

/* Wireshark shows the output as the error in the filter. */
static int check_filter(const struct extcap *e)
{
	struct filter f;
	char err[512] = "not enough memory";

	if (filter_compile_inner(
		    &f, e->inner, e->filter, e->tags, linktype_of(e->interface), err, sizeof(err)))
		puts(err);
	filter_free(&f);
	return STATUS_OK;
}

static int check_interface(const struct extcap *e)
{
	size_t len = strlen(EXTCAP_SCHEME);

	if (is_remote(e->interface))
		return 0;
	if (e->interface && !strncmp(e->interface, EXTCAP_SCHEME, len) && e->interface[len])
		return 0;
	return message_fail(-EINVAL,
		"extcap: %s: not an interface of ours; see 'ringtap-extcap --extcap-interfaces'",
		e->interface ? e->interface : "no --extcap-interface given");
}

static int answer(const struct extcap *e)
{
	if (e->interfaces)
		return print_interfaces();
	if (check_interface(e))
		return STATUS_USAGE;
	if (e->dlts)
		return print_dlts(e->interface);
	if (e->config)
		return print_config(e);
	if (e->capture && e->fifo)
		return is_remote(e->interface) ? capture_remote(e) : capture(e);
	if (e->filter && !e->capture)
		return check_filter(e);
	return message_fail(STATUS_USAGE,
		"extcap: nothing to do; give --extcap-dlts, --extcap-config, or --capture and --fifo");
}

int main(int argc, char **argv)
{
	struct extcap e = {.queue = -1};
	int ret;

	/* For the build only, so in no help. */
	if (argc == 2 && !strcmp(argv[1], "--describe"))
		return commands_describe((const struct command *const[]){&cmd_extcap, NULL});
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
