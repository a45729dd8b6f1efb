/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of ringtap, each defined in its folder. */
#ifndef RINGTAP_CLI_COMMANDS_H
#define RINGTAP_CLI_COMMANDS_H

#include "base/command.h"

extern const struct command cmd_anonymize, cmd_archive, cmd_attach, cmd_bug_report, cmd_detach,
	cmd_doctor, cmd_drops, cmd_explain, cmd_export, cmd_flight, cmd_flows, cmd_held, cmd_host,
	cmd_latency, cmd_list, cmd_memory, cmd_record, cmd_run, cmd_top, cmd_trace, cmd_web;

/* All of them, NULL at the end. */
extern const struct command *const commands[];

#endif
