/* SPDX-License-Identifier: BSD-3-Clause */
#include "tunables.h"

struct rt_probe_limits rt_probe_limits = {
	.deferred_ms = 10000,
	.hook_rest_ms = 2000,
	.filter_steps = 400000,
	.port_call_ms = 4,
	.full_wait_ms = 5000,
	.greeting_ms = 5000,
	.patience_ms = 1000,
};
