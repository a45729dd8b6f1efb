/* SPDX-License-Identifier: BSD-3-Clause */
/* The system's libpcap, for all other handles and interfaces. */
#ifndef RINGTAP_PCAP_REAL_H
#define RINGTAP_PCAP_REAL_H

#include <pcap/pcap.h>

/* The functions in use, grouped by the result where a libpcap lacks them. */
#define REAL_NUMBERS(X)              \
	X(bpf_validate)              \
	X(pcap_activate)             \
	X(pcap_bufsize)              \
	X(pcap_can_set_rfmon)        \
	X(pcap_compile)              \
	X(pcap_datalink)             \
	X(pcap_datalink_ext)         \
	X(pcap_dispatch)             \
	X(pcap_fileno)               \
	X(pcap_findalldevs)          \
	X(pcap_get_selectable_fd)    \
	X(pcap_get_tstamp_precision) \
	X(pcap_getnonblock)          \
	X(pcap_inject)               \
	X(pcap_is_swapped)           \
	X(pcap_list_datalinks)       \
	X(pcap_list_tstamp_types)    \
	X(pcap_lookupnet)            \
	X(pcap_loop)                 \
	X(pcap_major_version)        \
	X(pcap_minor_version)        \
	X(pcap_next_ex)              \
	X(pcap_sendpacket)           \
	X(pcap_set_buffer_size)      \
	X(pcap_set_datalink)         \
	X(pcap_set_immediate_mode)   \
	X(pcap_set_promisc)          \
	X(pcap_set_protocol_linux)   \
	X(pcap_set_rfmon)            \
	X(pcap_set_snaplen)          \
	X(pcap_set_timeout)          \
	X(pcap_set_tstamp_precision) \
	X(pcap_set_tstamp_type)      \
	X(pcap_setdirection)         \
	X(pcap_setfilter)            \
	X(pcap_setnonblock)          \
	X(pcap_snapshot)             \
	X(pcap_stats)
#define REAL_POINTERS(X)                        \
	X(pcap_create)                          \
	X(pcap_datalink_val_to_name)            \
	X(pcap_dump_fopen)                      \
	X(pcap_dump_open)                       \
	X(pcap_dump_open_append)                \
	X(pcap_get_required_select_timeout)     \
	X(pcap_geterr)                          \
	X(pcap_next)                            \
	X(pcap_open_dead_with_tstamp_precision) \
	X(pcap_open_live)                       \
	X(pcap_statustostr)
#define REAL_OTHERS(X)    \
	X(bpf_filter)     \
	X(pcap_breakloop) \
	X(pcap_close)

struct real {
#define FIELD(f) __typeof__(f) *f;
	REAL_NUMBERS(FIELD)
	REAL_POINTERS(FIELD)
	REAL_OTHERS(FIELD)
#undef FIELD
};

/* The first call looks the functions up. None is NULL. Async-signal-safe from the second call on.
 */
const struct real *real(void);

/* In the plug-in (plugin/host.c): dlopen()'s handle of the libpcap that has loaded it. */
void *real_library(void);

#endif
