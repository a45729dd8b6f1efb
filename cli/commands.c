/* SPDX-License-Identifier: BSD-3-Clause */
#include "commands.h"

/* In the order of the overview. */
const struct command *const commands[] = {
	&cmd_list,
	&cmd_attach,
	&cmd_detach,
	&cmd_record,
	&cmd_explain,
	&cmd_anonymize,
	&cmd_archive,
	&cmd_flight,
	&cmd_run,
	&cmd_host,
	&cmd_top,
	&cmd_web,
	&cmd_flows,
	&cmd_doctor,
	&cmd_latency,
	&cmd_drops,
	&cmd_held,
	&cmd_memory,
	&cmd_export,
	&cmd_trace,
	&cmd_bug_report,
	NULL,
};
