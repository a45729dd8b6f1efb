/* SPDX-License-Identifier: BSD-3-Clause */
/* Events for packets that drivers lost or refused, emitted when their counters have been read. */
#include "refresh.h"
#include "probe/trace/trace.h"

static void report_growth(uint16_t port, uint64_t *reported, uint64_t now, enum rt_drop reason)
{
	uint64_t grown = now - *reported;

	*reported = now;
	if (grown)
		rt_trace_drop(port, RT_TRACE_NO_QUEUE, grown, reason);
}

/* The smallest number that fits both counts is certain. What was on its way to the driver at the
 * first reading is not a refusal. */
static void tell_refused(
	struct rt_stats *f, uint32_t index, uint16_t port, const struct rt_stat_reading *r)
{
	struct rt_stat_port_state *state = &f->port_state[index];
	uint64_t opackets = r->driver.opackets, least = r->tx_before - opackets;
	bool known = state->polls_ns == f->on_ns[0] && r->driver.epoch == state->epoch;

	state->polls_ns = f->on_ns[0];
	state->epoch = r->driver.epoch;
	if (!known) {
		state->unsent = r->tx_after - opackets;
	} else if ((int64_t)(least - state->unsent) > 0) {
		rt_trace_tx_refused(port, RT_TRACE_NO_QUEUE, least - state->unsent);
		state->unsent = least;
	}
}

void rt_trace_ports(struct rt_stats *f, uint32_t index, const struct rt_stat_reading *r)
{
	struct rt_stat_port_state *state = &f->port_state[index];
	const struct rt_port_stats *s = &r->driver;
	uint16_t port = f->ports[index].port_id;

	if (!state->reported) { /* lost before tracing began */
		state->reported = true;
		state->imissed = s->imissed;
		state->ierrors = s->ierrors;
		state->rx_nombuf = s->rx_nombuf;
	}
	report_growth(port, &state->imissed, s->imissed, RT_DROP_IMISSED);
	report_growth(port, &state->ierrors, s->ierrors, RT_DROP_IERRORS);
	report_growth(port, &state->rx_nombuf, s->rx_nombuf, RT_DROP_RX_NOMBUF);
	if (rt_load(&rt_stat_mode.state) & RT_COLLECT_POLLS)
		tell_refused(f, index, port, r);
	else
		state->polls_ns = 0;
}
