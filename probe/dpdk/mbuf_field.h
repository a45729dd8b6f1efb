/* SPDX-License-Identifier: BSD-3-Clause */
/* Room for marks in the application's mbufs. */
#ifndef RINGTAP_PROBE_DPDK_MBUF_FIELD_H
#define RINGTAP_PROBE_DPDK_MBUF_FIELD_H

#include <stdint.h>

/* The registered field; 0: none yet. Read in hooks. */
struct rt_mbuf_field {
	uint64_t flag;  /* in ol_flags */
	int32_t offset; /* 8 bytes in the mbuf */
};

/* Registers a dynamic field of 8 bytes and a dynamic flag by these names. Once, for good: DPDK has
 * no way to unregister. Control lock held. 0 or -errno; then a sentence is in err (RT_TEXT_LEN
 * bytes), which begins with what needs them. */
int rt_mbuf_field_register(
	struct rt_mbuf_field *f, const char *field, const char *flag, const char *what, char *err);

/* Where mbufs have the history of their operations, see common/mbuf_history.h: the offset of 8
 * aligned bytes; 0: the application's DPDK keeps none. */
uint32_t rt_mbuf_history_offset(void);

#endif
