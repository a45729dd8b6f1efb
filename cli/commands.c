/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

const struct command *const commands[] = {
	&cmd_list, &cmd_record, &cmd_run, &cmd_top, NULL};
