/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the loaded object besides the library's sources. It is linked without DPDK: its
 * DPDK symbols are bound at load time to the application's. */
#include <string.h>

#include "api.h"
#include "common/commit.h"
#include "control.h"
#include "probe/dpdk/build.h"
#include "ringtap/probe.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const struct rt_probe_api ringtap_probe_api;

const struct rt_probe_api ringtap_probe_api = {
	.version = RT_API_VERSION,
	.size = sizeof(ringtap_probe_api),
	.start = ringtap_probe_start,
	.why = rt_build_why,
	.stop = ringtap_probe_stop,
	.port_name = ringtap_probe_port_name,
	.port_missed = ringtap_probe_port_missed,
	.port_stamped = ringtap_probe_port_stamped,
	.received_until = ringtap_probe_received_until,
	.port_source = ringtap_probe_port_source,
	.port_count = ringtap_probe_port_count,
};

const char *rt_probe_version(void)
{
	return strcmp(RINGTAP_COMMIT, "release") ? RINGTAP_VERSION "+" RINGTAP_COMMIT
						 : RINGTAP_VERSION;
}
