/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start of the probe. Loaded by EAL's -d, it registers telemetry commands and does nothing else
 * until the attach command is called, or until DPDK's start in a secondary process, which has no
 * telemetry. Linked in, it is started by the application.
 */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_telemetry.h>

#include "probe/above.h"
#include "probe/dpdk/build.h"
#include "control.h"
#include "probe/capture/epb.h"
#include "probe/hook/hook.h"
#include "plugin.h"
#include "probe/above.h"
#include "probe/dpdk/given.h"
#include "ringtap/probe.h"
#include "probe/dpdk/secondary.h"
#include "telemetry.h"
#include "probe/trace/trace.h"
#include "probe/trace/load.h"

#define EXPORT __attribute__((visibility("default")))

static bool registered;

int rt_probe_init(void)
{
	int ret = rt_build_check();

	if (ret)
		return ret;
	rt_epb_init();
	return rt_threads_init();
}

static int on_attach(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char socket[RT_SOCKET_NAME_MAX];
	int ret;

	if (params && !strcmp(params, RT_TELEMETRY_WAKE))
		rt_control_wake();
	ret = rt_control_start(false);
	if (ret == -EALREADY)
		ret = 0;
	rt_control_socket(socket);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "protocol", RT_PROTO_VERSION);
	rte_tel_data_add_dict_int(d, "status", ret);
	if (ret == -ENOTSUP)
		rte_tel_data_add_dict_string(d, "reason", rt_build_why());
	rte_tel_data_add_dict_string(d, "socket", socket[0] ? socket : RT_SOCKET_NAME);
	rte_tel_data_add_dict_string(d, "version", rt_probe_version());
	return 0;
}

__attribute__((constructor)) static void probe_loaded(void)
{
	rt_control_early();
	rt_trace_load_early();
	/* With one probe linked in and one loaded, rte_telemetry would call the one registered
	 * last; the first has the trace points and may have been started. */
	if (rt_trace_points_taken())
		return;
	registered = true;
	/* rte_telemetry refuses help texts of 64 characters and more. */
	rte_telemetry_register_cmd(
		RT_TELEMETRY_ATTACH, on_attach, "Starts the ringtap probe. Takes no parameters");
	rt_telemetry_register();
	rt_telemetry_register_trace();
}

void rt_probe_buses_begin(void)
{
	/* Nothing would start it later, but an attach. */
	if (registered && rt_is_secondary())
		(void)rt_control_start(false);
}

EXPORT int ringtap_probe_start(void)
{
	/* Not before EAL has memory: an attach may come that early. */
	return rte_get_tsc_hz() ? rt_control_start(true) : -EAGAIN;
}

EXPORT void ringtap_probe_stop(void)
{
	rt_control_stop();
}

EXPORT int ringtap_probe_port_name(uint16_t port, const char *name)
{
	return rt_port_set_name(port, name);
}

EXPORT int ringtap_probe_port_missed(uint16_t port, uint64_t packets)
{
	return rt_port_set_missed(port, packets);
}

EXPORT int ringtap_probe_port_stamped(uint16_t port)
{
	return rt_port_set_stamped(port);
}

EXPORT int ringtap_probe_port_source(uint16_t port, const struct ringtap_probe_source *source)
{
	return rt_port_set_source(port, source);
}

EXPORT int ringtap_probe_port_count(uint16_t port, const struct ringtap_probe_counts *more)
{
	return rt_port_count(port, more);
}

EXPORT void ringtap_probe_received_until(uint64_t ns)
{
	rt_hook_until = ns;
}
