/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

const struct command *const commands[] = {&cmd_doctor, &cmd_export, &cmd_latency, &cmd_list,
	&cmd_memory, &cmd_record, &cmd_top, NULL};
