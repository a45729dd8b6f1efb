/* SPDX-License-Identifier: BSD-3-Clause */
/* The application's own reports about its ports: see <ringtap/probe.h>. */
#ifndef RINGTAP_PROBE_DPDK_GIVEN_H
#define RINGTAP_PROBE_DPDK_GIVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/segment.h"

struct ringtap_probe_counts;
struct ringtap_probe_source;

/* Constant from before the port is started until the process ends, except for the counters. */
struct rt_given {
	char name[RT_NAME_LEN]; /* empty: ethdev's */
	uint32_t stamped;
	/* A port that stands for something else: see struct ringtap_probe_source. */
	bool is_source;
	char driver[RT_NAME_LEN]; /* empty: ethdev's */
	uint16_t linktype;        /* LINKTYPE_…; 0: Ethernet */
	int wire_offset;
	uint64_t wire_flag; /* 0: no packet is cut */
	/* Added to ethdev's. Any thread. */
	uint64_t missed;
	uint64_t ipackets, ibytes, opackets, obytes;
};

/* The port must be less than RT_MAX_PORTS. */
const struct rt_given *rt_given(uint16_t port);

/* 0 or -EINVAL. */
int rt_port_set_name(uint16_t port, const char *name);
int rt_port_set_missed(uint16_t port, uint64_t packets);
int rt_port_set_stamped(uint16_t port);
int rt_port_set_source(uint16_t port, const struct ringtap_probe_source *source);
int rt_port_count(uint16_t port, const struct ringtap_probe_counts *more);

static inline bool rt_port_stamped(uint16_t port)
{
	return rt_given(port)->stamped;
}

#endif
