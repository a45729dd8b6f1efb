/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/interfaces.h"
#include "record.h"
#include "base/util.h"

/* clang-format off: it would break the texts at odd places */
static const struct section sections[] = {
	{"DESCRIPTION",
		"ringtap record writes the packets of running DPDK applications to a pcapng "
		"file: what their ports receive and send, in time order over all ports, queues "
		"and threads, with direction and queue on every packet. The applications need no "
		"change; they carry the probe, see ringtap(1). Option letters and their meanings "
		"are those of dumpcap(1).\n\n"
		"Every packet of a port is exactly one of: captured, filtered out, or lost for a "
		"named reason. The file has the place of each loss (epb_dropcount) and the "
		"counts of each interface (Interface Statistics Blocks, every ten seconds and at "
		"the end); the summary on standard error has the counts.\n\n"
		"SIGINT, SIGTERM and SIGHUP end the capture at its source; everything captured "
		"until then is written and the file is finished. A second signal discards what "
		"is not yet written. The end of the application ends the capture in the same "
		"way.\n\n"
		"Files on disk are written by io_uring and O_DIRECT, all others by plain writes "
		"straight from the memory that is shared with the application. If the disk is "
		"full or fails, the file is cut after its last whole packet.\n"},
	SECTION_OPEN_VSWITCH,
	{"EXAMPLES", "Record all ports of the only application until Ctrl-C:\n\n"
		     "  ringtap record -w all.pcapng\n\n"
		     "Ten seconds of the packets that port p0 of application ovs receives from "
		     "one host, 96 bytes of each:\n\n"
		     "  ringtap record -i ovs:p0 -f 'host 192.0.2.1' -s 96 --direction rx \\\n"
		     "      -a duration:10 -w a.pcapng\n\n"
		     "Two ports with different filters into a ring of ten files of 100 MB:\n\n"
		     "  ringtap record -i 0 -f arp -i 1 -f 'udp port 53' \\\n"
		     "      -b filesize:100000 -b files:10 -w ring.pcapng\n\n"
		     "Watch live:\n\n"
		     "  ringtap record -w - | tshark -r -\n"
		     "  ringtap record -q -w - | wireshark -k -i -\n\n"
		     "Fail a test that lost packets:\n\n"
		     "  ringtap record -c 1000000 -w /dev/null --fail-on-loss --json\n"},
	{"INTERFACES IN SEVERAL APPLICATIONS",
		"In [APP:]PORT, what stands before the first colon is the application if one of "
		"that file-prefix runs; else the whole is the port's name, as in 0000:03:00.0. "
		"Interfaces of several applications are merged into one file and called APP:PORT "
		"in it. Of several -i that match a port the first one decides.\n"},
	{"STATISTICS BLOCKS",
		"Counts are those since the beginning of the capture, in every file of a ring "
		"buffer. isb_ifrecv: packets seen, both directions. isb_filteraccept: of them, "
		"those that passed the filter. isb_osdrop: of those, lost by the capture. "
		"isb_usrdeliv: written. isb_ifdrop: lost before, by the NIC (imissed and "
		"rx_nombuf); a comment gives the NIC's counters. Blocks with isb_endtime are "
		"final and exact.\n"},
	{"EXIT STATUS",
		"0: the capture ended by a limit, a signal, or the end of the application.\n\n"
		"1: attaching failed, the output could not be written (also: the reader of a "
		"pipe has ended), or a ring was corrupt. Packets in the file are whole.\n\n"
		"2: the command line or a filter is wrong; nothing was attached.\n\n"
		"3: packets were lost, and --fail-on-loss was given. Losses of the NIC do not "
		"count.\n"},
};
/* clang-format on */

/* The filter of -S: only counts are needed, so no packet is copied. */
static const struct ringtap_insn reject_all = {.code = 6 /* BPF_RET | BPF_K */, .k = 0};

static void reject_unfiltered(struct targets *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		for (unsigned j = 0; j < t->list[i].port_count; j++) {
			if (t->list[i].ports[j].filter)
				continue;
			t->list[i].ports[j].filter = &reject_all;
			t->list[i].ports[j].filter_len = 1;
		}
	}
}

static int dump_filters(const struct record_config *cfg)
{
	for (unsigned i = 0; i < cfg->iface_count; i++) {
		if (cfg->iface_count > 1)
			printf("%s%s:\n", i ? "\n" : "", cfg->ifaces[i].spec);
		filter_dump(&cfg->ifaces[i].compiled);
	}
	return STATUS_OK;
}

static int verdict(const struct recorder *r)
{
	bool lost;

	if (r->error)
		return STATUS_FAILED;
	lost = (r->cfg->fail_on_loss || !r->cfg->quiet) && report_losses(r);
	return r->cfg->fail_on_loss && lost ? STATUS_LOSS : STATUS_OK;
}

/* dumpcap's wording: scripts wait for it. From here on packets are captured. */
static void announce(const struct recorder *r)
{
	unsigned count = ringtap_capture_interface_count(r->cap);

	fputs("Capturing on ", stderr);
	for (unsigned i = 0; i < count; i++) {
		struct ringtap_interface info = {.size = sizeof(info)};

		if (!ringtap_capture_interface(r->cap, i, &info))
			fprintf(stderr, "%s'%s:%s'", i ? ", " : "", info.app_name, info.name);
	}
	fputs(count ? "\n" : "ports to come\n", stderr);
}

/* Attached and with an open file: all the rest. */
static int record_attached(struct recorder *r)
{
	bool to_stdout = r->cfg->path && !strcmp(r->cfg->path, "-");

	/* The loop's first read fails again and reports it. */
	(void)ringtap_capture_start(r->cap);
	if (!r->cfg->quiet)
		announce(r);
	recorder_loop(r);
	signals_release();
	if (!r->cfg->quiet) {
		if (isatty(STDERR_FILENO))
			report_live(r, r->end_mono_ns);
		report_summary(r, stderr);
	}
	if (r->cfg->json)
		report_json(r, to_stdout ? stderr : stdout);
	return verdict(r);
}

int recorder_run(struct recorder *r)
{
	int ret = targets_resolve(&r->targets, r->cfg);

	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	ret = ringtap_capture_create(&r->cap, NULL);
	if (!ret)
		ret = output_init(&r->out, r->cfg);
	if (ret) {
		message_print("record: starting: %s", strerror(-ret));
		return STATUS_FAILED;
	}
	signals_catch(r->cap);
	if (r->cfg->statistics) {
		reject_unfiltered(&r->targets);
		return recorder_attach(r) ? STATUS_FAILED : statistics_run(r);
	}
	/* A file that cannot be opened must not cost the application anything. */
	if (file_open_first(r))
		return STATUS_FAILED;
	if (recorder_attach(r)) {
		sink_abandon(r->out.sink);
		return STATUS_FAILED;
	}
	return record_attached(r);
}

void recorder_free(struct recorder *r)
{
	signals_release();
	if (r->cap)
		ringtap_capture_close(r->cap);
	output_free(&r->out);
	files_free(&r->files);
	targets_free(&r->targets);
	free(r->path);
	free(r->bad_path);
	free(r->shares);
	free(r->error_text);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct record_config cfg;
	struct recorder r = {.cfg = &cfg};
	int status = STATUS_USAGE;
	int ret;

	config_init(&cfg);
	ret = options_parse(self, argc, argv, &cfg);
	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!config_check(&cfg)) {
		if (cfg.dump_filter) {
			status = dump_filters(&cfg);
		} else if (cfg.list_interfaces) {
			status = interfaces_list();
		} else {
			status = recorder_run(&r);
			recorder_free(&r);
		}
	}
	config_free(&cfg);
	return status;
}

const struct command cmd_record = {
	.name = "record",
	.summary = "record packets of running DPDK applications to a file",
	.options = record_options,
	.option_count = RECORD_OPTION_COUNT,
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.set = config_set,
	.run = run,
};
