/* SPDX-License-Identifier: BSD-3-Clause */
/* A port as collectors know it. */
#ifndef RINGTAP_FLOWS_EXPORT_PORT_H
#define RINGTAP_FLOWS_EXPORT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "ringtap/reader.h"

#define EXPORT_UNKNOWN UINT64_MAX

struct export_port {
	struct ringtap_interface info;
	uint32_t index;                         /* ifIndex: DPDK's number and 1; 0: unknown */
	uint64_t seen, lost;                    /* packets of the capture */
	uint32_t flow_samples, counter_samples; /* sent so far */
};

/* Counters of the NIC since its start; EXPORT_UNKNOWN. */
struct export_counters {
	uint64_t in_packets, in_bytes, in_discards, in_errors;
	uint64_t out_packets, out_bytes, out_errors;
};

#endif
