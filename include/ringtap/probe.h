/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libringtap-probe, link-in use: for applications that run with --no-telemetry or cannot load
 * plugins. Applications that load the probe with EAL's -d need none of this. The shared library
 * loads the probe that fits the application's DPDK from the folder ringtap/ beside itself.
 */
#ifndef RINGTAP_PROBE_H
#define RINGTAP_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the control socket (`ringtap.sock`, or with a number) in the DPDK runtime folder and starts
 * the control thread. Call it after rte_eal_init(), from any thread. Nothing is hooked until a
 * reader attaches. A secondary process has a socket of its own, `ringtap.sock@PID`, which the
 * plugin opens by itself. Returns 0, or -errno: -EALREADY (running), -EAGAIN (before
 * rte_eal_init()), -ENOTSUP (no runtime folder, or a build of DPDK that the probe does not
 * support, which 'ringtap list' names), -ENOSYS (the shared library could not load
 * the probe; a line on stderr gave the reason when it was loaded itself), -ESHUTDOWN (after
 * rte_eal_cleanup()), … */
int ringtap_probe_start(void);

/* Ends every session, removes all hooks, stops the control thread and removes the socket.
 * Returns when done. Nothing can attach any more before it is started again. Waits one second at
 * most for a thread that has left a hook by siglongjmp() or that a debugger has stopped inside one:
 * the memory that it may use is freed after the next start. rte_eal_cleanup() and exit() do the
 * same, for good. */
void ringtap_probe_stop(void);

/* For applications that know more of a port than its driver reports. All but the last may be called
 * from any thread, also before ringtap_probe_start(). -EINVAL: no port can have this number. */

/* Calls the port by this name instead of ethdev's, cut to 63 bytes. Call it once, before the port
 * is started; it holds until the process ends. */
int ringtap_probe_port_name(uint16_t port, const char *name);

/* Packets that were lost on their way to the port and that its driver does not count, since the
 * port was made: readers find them added to ethdev's imissed. */
int ringtap_probe_port_missed(uint16_t port, uint64_t packets);

/* The RX time stamps of the port's mbufs (rte_mbuf_dyn_rx_timestamp) are nanoseconds of
 * CLOCK_REALTIME, do not decrease within a polling thread, and all its packets have one: captures
 * use them instead of the time of the burst. A thread that polls such a port must poll no others,
 * and must call ringtap_probe_received_until(). What it sends is captured with the time up to which
 * it has received. Call it once, before the port is started; it holds until the process ends. */
int ringtap_probe_port_stamped(uint16_t port);

/* A port whose packets the application gets from elsewhere: from packet sockets, in ringtap-host.
 * It is stamped (see above), also in what is sent, which must be in order with what is received. */
struct ringtap_probe_source {
	const char *driver; /* reported instead of ethdev's; cut to 63 bytes */
	uint16_t linktype;  /* LINKTYPE_… of its packets (pcap-linktype(7)); 0 or 1: Ethernet */
	/* Cut packets have this flag in ol_flags, and their length on the wire as uint32_t in a
	 * dynamic field at this offset. 0: none is cut. */
	uint64_t wire_flag;
	int wire_offset;
};
/* Call it once, before the port is started; it holds until the process ends. */
int ringtap_probe_port_source(uint16_t port, const struct ringtap_probe_source *source);

/* Packets and bytes that its driver does not count: readers find them added to ethdev's. Call it
 * before the burst that has them. */
struct ringtap_probe_counts {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
};
int ringtap_probe_port_count(uint16_t port, const struct ringtap_probe_counts *more);

/* The calling thread will receive no packet any more that is stamped before ns: so readers do not
 * wait for it. Call it before each empty poll, at least every 500 ms. */
void ringtap_probe_received_until(uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
