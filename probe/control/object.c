/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the loaded object contains besides the library's sources. It is linked without DPDK. Its
 * DPDK symbols are bound at load time to the application's, which are in the global scope. That
 * scope is searched first, so the rte_bpf functions below are used only in an application that has
 * none: it need not link librte_bpf.
 */
#include <errno.h>

#include <rte_bpf.h>
#include <rte_errno.h>

#include "api.h"
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

EXPORT struct rte_bpf_prm *rte_bpf_convert(const struct bpf_program *prog)
{
	rte_errno = ENOTSUP;
	return NULL;
}

EXPORT struct rte_bpf *rte_bpf_load(const struct rte_bpf_prm *prm)
{
	rte_errno = ENOTSUP;
	return NULL;
}

EXPORT int rte_bpf_get_jit(const struct rte_bpf *bpf, struct rte_bpf_jit *jit)
{
	return -ENOTSUP;
}

EXPORT void rte_bpf_destroy(struct rte_bpf *bpf)
{
}

EXPORT uint64_t rte_bpf_exec(const struct rte_bpf *bpf, void *ctx)
{
	return 0;
}
