/* SPDX-License-Identifier: BSD-3-Clause */
/* Events for packets that drivers lost or refused, emitted when their counters have been read. */
#include <rte_ethdev.h>

#include "probe/monitor/stats.h"
#include "trace.h"

/* Packets that the application has handed over to the port's driver; packets offered again count
 * again. */
static uint64_t handed_over(const struct rt_stats *f, uint32_t index)
{
	uint32_t n = rt_load(&f->header->hook_count);
	uint64_t packets = 0;

	for (uint32_t i = 0; i < n && i < RT_STAT_HOOKS; i++) {
		const struct rt_stat_hook *b = &f->hooks[i];

		/* Pairs with the release in rt_stat_claim_block(). */
		if (!rt_load_acquire(&b->life) || b->port_index != index ||
			b->direction != RT_DIR_TX)
			continue;
		for (uint64_t k = 1; k <= RT_STAT_BURSTS; k++)
			packets += k * rt_load(&b->burst[k]);
		packets += rt_load(&b->big_packets);
	}
	return packets;
}

uint64_t rt_trace_ports_before(const struct rt_stats *f, uint32_t index)
{
	return handed_over(f, index);
}

/* A driver's counter that the application has reset starts again at 0. */
static void tell(uint16_t port, uint64_t *told, uint64_t now, enum rt_drop reason)
{
	uint64_t grown = now < *told ? now : now - *told;

	*told = now;
	if (grown)
		rt_trace_drop(port, RT_TRACE_NO_QUEUE, grown, reason);
}

/* While the driver was read, between handed and as many packets as there are now had been handed
 * over: the least is certain. Packets on their way at the first reading are not refused. */
static void tell_refused(struct rt_stats *f, uint32_t index, uint16_t port, uint64_t handed,
	const struct rte_eth_stats *s)
{
	struct rt_stat_port_state *state = &f->port_state[index];
	uint64_t most = handed_over(f, index) - s->opackets, least = handed - s->opackets;
	bool known = state->polls_ns == f->on_ns[0] && s->opackets >= state->opackets;

	state->polls_ns = f->on_ns[0];
	state->opackets = s->opackets;
	if (!known) {
		state->unsent = most;
	} else if ((int64_t)(least - state->unsent) > 0) {
		rt_trace_tx_refused(port, RT_TRACE_NO_QUEUE, least - state->unsent);
		state->unsent = least;
	}
}

void rt_trace_ports_after(
	struct rt_stats *f, uint32_t index, uint64_t handed, const struct rte_eth_stats *s)
{
	struct rt_stat_port_state *state = &f->port_state[index];
	uint16_t port = f->ports[index].port_id;

	if (!state->told) { /* lost before tracing began */
		state->told = true;
		state->imissed = s->imissed;
		state->ierrors = s->ierrors;
		state->rx_nombuf = s->rx_nombuf;
	}
	tell(port, &state->imissed, s->imissed, RT_DROP_IMISSED);
	tell(port, &state->ierrors, s->ierrors, RT_DROP_IERRORS);
	tell(port, &state->rx_nombuf, s->rx_nombuf, RT_DROP_RX_NOMBUF);
	if (rt_load(&rt_stat_mode.state) & RT_INSTR_POLLS)
		tell_refused(f, index, port, handed, s);
	else
		state->polls_ns = 0;
}
