/* SPDX-License-Identifier: BSD-3-Clause */
/* Destination of a hook's packets. */
#ifndef RINGTAP_PROBE_HOOK_TAP_H
#define RINGTAP_PROBE_HOOK_TAP_H

#include <stdbool.h>
#include <stdint.h>

struct rt_filter;
struct rt_hook;
struct rt_nic_clock;
struct rt_session;
struct rt_tapset;

/* One (port, queue, direction) of one session. Constant once it is linked into a hook, except
 * for the filter. */
struct rt_tap {
	struct rt_session *session;
	const struct rt_filter *filter; /* NULL: everything passes; read once per burst */
	struct rt_hook *hook;
	uint32_t index; /* in the segment's tap table */
	uint32_t if_index;
	uint32_t snaplen; /* bytes */
	uint16_t port, queue;
	uint8_t direction; /* enum rt_direction */
	bool wait;         /* on-full=wait */
	bool sampled;      /* its session takes one of N packets */
	bool each;         /* packets are judged or copied one by one: for time stamps, mbufs,
			    * lengths or the first of each flow */
	int nic_ts_offset; /* offset of the mbuf field; -1: time stamps are the TSC's */
	uint64_t nic_ts_flag;
	bool stamped; /* packets are stamped with CLOCK_REALTIME, in order: rt_port_stamped() */
	bool mbufs;   /* RT_OPEN_MBUFS */
	bool lengths; /* RT_OPEN_LENGTHS */
	bool first;   /* RT_OPEN_FIRST */
	bool raw;     /* its packets begin with a header of IP */
	struct rt_nic_clock *nic_clock;
	/* Packets with this flag were cut, and have their length on the wire in this field of the
	 * mbuf. 0: none. Only of stamped taps: others do not read it. */
	uint64_t wire_flag;
	int wire_offset;
	uint32_t ids;       /* RT_IDS_ON, RT_IDS_INFER, RT_IDS_FATES, RT_IDS_EVENTS; 0: records
			     * have none */
	uint64_t id_source; /* in the top bits of each id */
	/* Trailers without their total length, see probe/capture/epb.h. */
	uint8_t trailer[32];
	uint8_t trailer_hash[48];
	uint8_t trailer_id[32];
	uint8_t trailer_both[32];
	bool due; /* to be linked */
	bool linked;
	struct rt_tapset *spare; /* allocated in advance, so that unlinking needs no memory */
	uint64_t orphaned;       /* the hook's count of slotless threads when it was last added */
};

#endif
