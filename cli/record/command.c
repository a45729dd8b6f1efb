/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "anonymize/key.h"
#include "cli/commands.h"
#include "target/interfaces.h"
#include "file.h"
#include "newcomers.h"
#include "kernel_ports.h"
#include "listen.h"
#include "record.h"
#include "report.h"
#include "signals.h"
#include "base/util.h"

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
	for (unsigned i = 0; i < cfg->capture.iface_count; i++) {
		if (cfg->capture.iface_count > 1)
			printf("%s%s:\n", i ? "\n" : "", cfg->capture.ifaces[i].spec);
		filter_dump(&cfg->capture.ifaces[i].compiled);
	}
	return STATUS_OK;
}

static uint64_t queues_refused(const struct recorder *r)
{
	struct ringtap_stats s = {.size = sizeof(s)};

	return ringtap_capture_stats(r->cap, &s) ? 0 : s.queues_refused;
}

static int verdict(const struct recorder *r)
{
	bool lost = false;

	/* The end of what reads the output is one of the ways to stop. */
	if (r->error && r->error != -EPIPE)
		return STATUS_FAILED;
	if (r->cfg->fail_on_loss || !r->cfg->quiet) {
		report_buffer(r);
		lost = report_losses(r);
		lost |= report_fates_lost(r);
	}
	lost |= queues_refused(r) > 0;
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

/* 0, or -errno after a message. The loop's first read fails again with errors that are not here,
 * and reports them. */
static int start(struct recorder *r)
{
	const char *command = r->cfg->capture.command;
	int ret = ringtap_capture_start(r->cap);

	if (ret == -ECANCELED)
		return message_fail(ret, "%s: interrupted before it has captured packets", command);
	if (ret == -EBUSY)
		return message_fail(ret, "%s: capturing: %s; see 'ringtap list'", command,
			ringtap_capture_error(r->cap));
	if (!ret && queues_refused(r))
		message_print("%s: %" PRIu64
			      " queues are not captured: there are too many captures "
			      "of them, or too many queues; see 'ringtap list'",
			command, queues_refused(r));
	return 0;
}

/* At once: recordings of several clients end at the same time. */
static void print_summary(const struct recorder *r)
{
	size_t len = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	report_summary(r, f);
	if (!fclose(f))
		fwrite(text, 1, len, stderr);
	free(text);
}

/* Attached and with an open file: all the rest. */
static int record_attached(struct recorder *r)
{
	bool to_stdout = r->cfg->path && !strcmp(r->cfg->path, "-");

	record_fates_start(r);
	recorder_start_clocks(r);
	if (start(r)) {
		file_abandon(r);
		return STATUS_FAILED;
	}
	signals_attached();
	(void)clock_check(&r->clock); /* before it is announced: what is set later is noticed */
	if (!r->cfg->quiet)
		announce(r);
	recorder_loop(r);
	signals_release();
	if (!r->cfg->quiet) {
		if (isatty(STDERR_FILENO))
			report_live(r, r->end_mono_ns);
		print_summary(r);
	}
	if (r->cfg->json)
		report_json(r, to_stdout ? stderr : stdout);
	if (page_write(r))
		return STATUS_FAILED;
	return verdict(r);
}

int recorder_run(struct recorder *r)
{
	int ret = targets_resolve(&r->targets, &r->cfg->capture);

	r->newcomers_fd = -1;
	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	newcomers_begin(r);
	ret = ringtap_capture_create(&r->cap, NULL);
	if (!ret)
		ret = ringtap_packets_create(&r->walk);
	if (ret)
		return message_fail(STATUS_FAILED, "record: starting: %s", strerror(-ret));
	signals_catch(r->cap);
	if (r->cfg->statistics) {
		reject_unfiltered(&r->targets);
		if (targets_attach(&r->targets, &r->cfg->capture, r->cap))
			return STATUS_FAILED;
		signals_attached();
		return statistics_run(r);
	}
	/* A file that cannot be opened must not cost the application anything. */
	if (out_file_open(&r->page.file, "record", r->cfg->html) || file_open_first(r))
		return STATUS_FAILED;
	if (targets_attach(&r->targets, &r->cfg->capture, r->cap) ||
		(r->cfg->fates && record_fates_attach(r))) {
		file_abandon(r);
		return STATUS_FAILED;
	}
	return record_attached(r);
}

void recorder_free(struct recorder *r)
{
	signals_release();
	newcomers_end(r);
	if (r->cap)
		ringtap_capture_close(r->cap);
	record_fates_free(r->fates);
	page_free(&r->page);
	file_free(r);
	ringtap_packets_free(r->walk);
	targets_free(&r->targets);
	free(r->path);
	free(r->bad_path);
	free(r->shares);
	free(r->error_text);
}

static int record_once(struct record_config *cfg)
{
	struct recorder r = {.cfg = cfg};
	int status = recorder_run(&r);

	recorder_free(&r);
	return status;
}

static int record_all(struct record_config *cfg)
{
	struct kernel_ports ports;
	int status = STATUS_FAILED;

	cfg->output.names = cfg->anonymize ? key_open("record", cfg->key, cfg->path) : NULL;
	if (cfg->anonymize && !cfg->output.names)
		return status;
	if (!kernel_ports_begin(&ports, &cfg->capture))
		status = cfg->listen ? listen_run(cfg, record_once) : record_once(cfg);
	kernel_ports_end(&ports);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct record_config cfg;
	int status = STATUS_USAGE;
	int ret;

	config_init(&cfg);
	ret = options_parse(self, argc, argv, &cfg);
	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	if (!config_check(&cfg)) {
		if (cfg.dump_filter)
			status = dump_filters(&cfg);
		else if (cfg.list_interfaces)
			status = interfaces_list();
		else
			status = record_all(&cfg);
	}
	config_free(&cfg);
	return status;
}

const struct command cmd_record = {
	.name = "record",
	.summary = "record packets of running DPDK applications to a file",
	.options = record_options,
	.option_count = RECORD_OPTION_COUNT,
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = config_operand,
	.set = config_set,
	.run = run,
};
