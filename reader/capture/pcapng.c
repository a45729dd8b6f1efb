/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks around the packets of a pcapng file, of what a capture knows. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "common/pcapng.h"
#include "capture.h"
#include "reader/export.h"

#define OPTIONS_IN(own, type, last, opts)                                                       \
	rt_options_in(&(own), sizeof(own), RT_END_OF(type, last), opts, (char[RT_TEXT_LEN]){0}, \
		RT_TEXT_LEN)

EXPORT int ringtap_pcapng_section(
	void *buf, size_t size, const struct ringtap_pcapng_section_options *opts)
{
	struct ringtap_pcapng_section_options o;
	struct utsname u;
	char os[sizeof(u.sysname) + sizeof(u.release) + 2];
	struct rt_pcapng_shb shb = {0};
	int ret = OPTIONS_IN(o, struct ringtap_pcapng_section_options, comment, opts);

	if (ret)
		return ret;
	shb.application = o.application ? o.application : "libringtap " RINGTAP_VERSION;
	shb.comment = o.comment;
	shb.more = o.comments;
	if (!uname(&u)) {
		snprintf(os, sizeof(os), "%s %s", u.sysname, u.release);
		shb.hardware = u.machine;
		shb.os = os;
	}
	return (int)rt_pcapng_shb(buf, size, &shb);
}

EXPORT int ringtap_pcapng_interface(const struct ringtap_capture *cap, unsigned i, void *buf,
	size_t size, const struct ringtap_pcapng_interface_options *opts)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	struct ringtap_pcapng_interface_options o;
	char name[2 * RINGTAP_NAME_LEN + 2], description[2 * RINGTAP_NAME_LEN + 48];
	bool several = rt_capture_applications(cap) > 1;
	char own[64] = "", sampling[32] = "", first[64] = "";
	int ret = OPTIONS_IN(o, struct ringtap_pcapng_interface_options, filter, opts);

	if (!ret)
		ret = ringtap_capture_interface(cap, i, &info);
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "%s%s%s", several ? info.app_name : "", several ? ":" : "",
		info.name);
	snprintf(description, sizeof(description), "port %u of DPDK application %s", info.port_id,
		info.app_name);
	if (info.device[0] && strcmp(info.name, info.device))
		snprintf(description, sizeof(description), "port %u of DPDK application %s, %s",
			info.port_id, info.app_name, info.device);
	if (o.snaplen && o.snaplen != info.snaplen)
		snprintf(own, sizeof(own), "snapshot length of this interface: %u", info.snaplen);
	if (info.sample > 1)
		snprintf(sampling, sizeof(sampling), "sampling: every=%u", info.sample);
	rt_capture_first(cap, i, first, sizeof(first));
	return (int)rt_pcapng_idb(buf, size,
		&(struct rt_pcapng_idb){.name = o.name ? o.name : name,
			.description = o.description ? o.description : description,
			.mac = info.mac,
			.speed_bits = (uint64_t)info.link_mbps * 1000000,
			.hardware = info.driver,
			.filter = o.filter,
			.comment = o.comment,
			.remark = {own, sampling, first},
			.linktype = info.linktype,
			.snaplen = o.snaplen ? o.snaplen : info.snaplen});
}

/* Over its queues and directions. */
static struct ringtap_counts sum_interface(const struct ringtap_capture *cap, unsigned i)
{
	unsigned taps = ringtap_capture_tap_count(cap);
	struct ringtap_counts sum = {0};

	for (unsigned k = 0; k < taps; k++) {
		struct ringtap_tap t = {.size = sizeof(t)};

		if (ringtap_capture_tap(cap, k, &t) || t.interface != i)
			continue;
		sum.seen += t.counts.seen;
		sum.filtered += t.counts.filtered;
		sum.not_sampled += t.counts.not_sampled;
		sum.cut += t.counts.cut;
		sum.evicted += t.counts.evicted;
		for (unsigned n = 0; n < RINGTAP_LOST_MAX; n++)
			sum.lost[0] += t.counts.lost[n];
	}
	return sum;
}

/* Packets that the filter, the sample and the limit of flows let pass. What is read while threads
 * count may lack a burst in seen. */
static uint64_t accepted(const struct ringtap_counts *c)
{
	uint64_t left_out = c->filtered + c->not_sampled + c->cut;

	return c->seen > left_out ? c->seen - left_out : 0;
}

EXPORT int ringtap_pcapng_statistics(const struct ringtap_capture *cap, unsigned i, void *buf,
	size_t size, const struct ringtap_pcapng_statistics_options *opts)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	struct ringtap_pcapng_statistics_options o;
	char nic[RT_PCAPNG_COMMENT_MAX + 1], sampling[80] = "", first[80] = "";
	struct ringtap_counts c;
	int ret = OPTIONS_IN(o, struct ringtap_pcapng_statistics_options, comment, opts);

	if (!ret)
		ret = ringtap_capture_interface(cap, i, &info);
	if (ret)
		return ret;
	c = sum_interface(cap, i);
	nic[0] = '\0';
	if (info.nic_ns || info.nic_ipackets || info.nic_opackets)
		snprintf(nic, sizeof(nic),
			"NIC: missed=%" PRIu64 " rx_errors=%" PRIu64 " no_mbuf=%" PRIu64
			" rx_packets=%" PRIu64 " tx_packets=%" PRIu64 " tx_errors=%" PRIu64,
			info.nic_imissed, info.nic_ierrors, info.nic_nombuf, info.nic_ipackets,
			info.nic_opackets, info.nic_oerrors);
	if (info.sample > 1)
		snprintf(sampling, sizeof(sampling), "sampling: every=%u not_sampled=%" PRIu64,
			info.sample, c.not_sampled);
	if (rt_capture_first(cap, i, first, sizeof(first)))
		snprintf(first, sizeof(first), "first: cut=%" PRIu64 " evicted=%" PRIu64, c.cut,
			c.evicted);
	return (int)rt_pcapng_isb(buf, size,
		&(struct rt_pcapng_isb){.interface_id = i,
			.time_ns = o.end_ns ? o.end_ns : rt_now_ns(CLOCK_REALTIME),
			.starttime_ns = o.start_ns ? o.start_ns : RT_PCAPNG_NONE,
			.endtime_ns = o.end_ns ? o.end_ns : RT_PCAPNG_NONE,
			.ifrecv = c.seen,
			.ifdrop = info.nic_imissed + info.nic_nombuf,
			.filteraccept = accepted(&c),
			.osdrop = c.lost[0],
			.usrdeliv = o.has_delivered ? o.delivered : RT_PCAPNG_NONE,
			.comment = {nic, o.comment, o.clock, sampling, first}});
}
