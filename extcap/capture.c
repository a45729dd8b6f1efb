/* SPDX-License-Identifier: BSD-3-Clause */
/* `ringtap record` into Wireshark's pipe. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/record/record.h"
#include "cli/record/report.h"
#include "base/util.h"
#include "extcap.h"

static int configure(struct record_config *cfg, const struct extcap *e, const char *spec)
{
	config_init(cfg);
	cfg->capture.command = "extcap";
	cfg->capture.defaults = (struct iface_config){.filter = e->filter,
		.snaplen = e->snaplen ? e->snaplen : RINGTAP_SNAPLEN_MAX,
		.directions = e->directions ? e->directions : RINGTAP_RX | RINGTAP_TX,
		.queue = e->queue};
	if (config_operand(cfg, spec))
		return -EINVAL;
	cfg->capture.options.buffer_size = e->buffer_size;
	cfg->capture.options.timestamp = e->timestamp;
	cfg->capture.options.ids = e->ids;
	cfg->capture.options.sample = e->sample;
	cfg->capture.tags = e->tags;
	cfg->capture.inner = e->inner;
	if ((e->cut && *e->cut && config_cut(cfg, e->cut)) ||
		(e->first && *e->first && config_first(cfg, e->first)))
		return -EINVAL;
	cfg->path = e->fifo;
	/* Wireshark shows all of standard error, with "Error by extcap pipe:" before it. */
	cfg->quiet = cfg->quiet_end = true;
	return config_check(cfg);
}

int capture(const struct extcap *e)
{
	struct record_config cfg;
	struct recorder r = {.cfg = &cfg};
	char spec[2 * RINGTAP_NAME_LEN + 2];
	const char *name = e->interface + strlen(EXTCAP_SCHEME);
	int status = STATUS_USAGE;

	snprintf(spec, sizeof(spec), "%s%s", name, strchr(name, ':') ? "" : ":");
	if (!configure(&cfg, e, spec)) {
		status = recorder_run(&r);
		report_losses(&r);
		recorder_free(&r);
	}
	config_free(&cfg);
	return status;
}
