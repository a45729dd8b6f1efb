/* SPDX-License-Identifier: BSD-3-Clause */
#include "tunables.h"

_Thread_local struct rt_reader_limits rt_reader_limits = {
	.break_fd = -1,
	.answer_ms = 10000,
	.open_ms = 60000,
	.filter_ms = 8000,
	.telemetry_ms = 3000,
	.names_ms = 300,
	.collapse_ms = 1000,
	.hold_ns = 500000000,
	.still_ns = 500000000,
};
