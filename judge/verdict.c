/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a verdict. */
#include <stdarg.h>
#include <stdio.h>

#include "verdict.h"

const char *const verdict_names[VERDICT_COUNT] = {
	[VERDICT_TOO_SLOW] = "too_slow",
	[VERDICT_POOL_EXHAUSTED] = "pool_exhausted",
	[VERDICT_POOL_GROWS] = "pool_grows",
	[VERDICT_TX_REFUSED] = "tx_refused",
	[VERDICT_PORT_STOPPED] = "port_stopped",
	[VERDICT_PREEMPTED] = "preempted",
	[VERDICT_SMALL_BURSTS] = "small_bursts",
	[VERDICT_UNEVEN_QUEUES] = "uneven_queues",
	[VERDICT_SCATTERED] = "scattered_buffers",
	[VERDICT_RING_FULL] = "ring_full",
	[VERDICT_OVERFLOW] = "rx_overflow",
	[VERDICT_STALLED] = "stalled",
	[VERDICT_UNPOLLED_QUEUES] = "unpolled_queues",
	[VERDICT_SATURATED] = "saturated",
	[VERDICT_HUNG] = "hung",
	[VERDICT_NOT_POLLING] = "not_polling",
	[VERDICT_NOT_COUNTED] = "not_counted",
	[VERDICT_OUTSIDE] = "outside_dpdk",
	[VERDICT_FAR_NODE] = "far_node",
	[VERDICT_FAR_PAGES] = "far_pages",
	[VERDICT_NOT_ISOLATED] = "not_isolated",
	[VERDICT_INTERRUPTS] = "interrupts",
	[VERDICT_STOLEN] = "stolen",
	[VERDICT_SHARED_CORE] = "shared_core",
	[VERDICT_GOVERNOR] = "governor",
	[VERDICT_PAGE_FAULTS] = "page_faults",
	[VERDICT_THROTTLED] = "throttled",
	[VERDICT_IDLE] = "idle",
	[VERDICT_HEALTHY] = "healthy",
};

const char *const verdict_titles[VERDICT_COUNT] = {
	[VERDICT_TOO_SLOW] = "the application is too slow",
	[VERDICT_POOL_EXHAUSTED] = "the mempool is exhausted",
	[VERDICT_POOL_GROWS] = "the use of a mempool grows",
	[VERDICT_TX_REFUSED] = "TX refuses packets",
	[VERDICT_PORT_STOPPED] = "a port that was in use is stopped",
	[VERDICT_PREEMPTED] = "the polling thread is pre-empted",
	[VERDICT_SMALL_BURSTS] = "small bursts",
	[VERDICT_UNEVEN_QUEUES] = "the queues are uneven",
	[VERDICT_SCATTERED] = "the buffers are scattered over many pages",
	[VERDICT_RING_FULL] = "a ring is full",
	[VERDICT_OVERFLOW] = "the RX queue overflows now and then",
	[VERDICT_STALLED] = "a polling thread stalled",
	[VERDICT_UNPOLLED_QUEUES] = "some queues are not polled",
	[VERDICT_SATURATED] = "saturated",
	[VERDICT_HUNG] = "a thread has stopped polling",
	[VERDICT_NOT_POLLING] = "no thread polls",
	[VERDICT_NOT_COUNTED] = "polls are not counted",
	[VERDICT_OUTSIDE] = "interfaces without a port of DPDK",
	[VERDICT_FAR_NODE] = "a thread and what it uses are at different NUMA nodes",
	[VERDICT_FAR_PAGES] = "huge pages are at other NUMA nodes",
	[VERDICT_NOT_ISOLATED] = "polling CPUs are not isolated",
	[VERDICT_INTERRUPTS] = "a polling CPU serves interrupts",
	[VERDICT_STOLEN] = "the hypervisor takes a polling CPU",
	[VERDICT_SHARED_CORE] = "a polling thread shares its core",
	[VERDICT_GOVERNOR] = "the frequency of a polling CPU may change",
	[VERDICT_PAGE_FAULTS] = "a polling thread has page faults",
	[VERDICT_THROTTLED] = "a polling thread may be throttled",
	[VERDICT_IDLE] = "idle",
	[VERDICT_HEALTHY] = "healthy",
};

const char *const grade_names[] = {"fault", "ok", "note"};

struct verdict *verdict_add(struct diagnosis *d, enum verdict_id id, enum grade grade,
	double gravity, const char *advice)
{
	struct verdict *v;

	if (d->count == VERDICTS_MAX)
		return NULL;
	v = &d->verdict[d->count++];
	*v = (struct verdict){.id = id, .grade = grade, .gravity = gravity, .advice = advice};
	return v;
}

void verdict_add_evidence(struct verdict *v, const char *format, ...)
{
	va_list ap;

	if (!v || v->evidence_count == EVIDENCE_MAX)
		return;
	va_start(ap, format);
	vsnprintf(v->evidence[v->evidence_count++], EVIDENCE_LEN, format, ap);
	va_end(ap);
}
