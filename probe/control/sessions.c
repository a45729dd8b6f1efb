/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>

#include "control.h"
#include "probe/hook/hook.h"
#include "probe/dpdk/nic_time.h"
#include "probe/dpdk/ports.h"
#include "probe/capture/fate.h"
#include "sessions.h"
#include "probe/dpdk/teardown.h"

void rt_sessions_free_abandoned(void)
{
	for (struct rt_session **p = &rt_sessions; *p;) {
		struct rt_session *s = *p;

		if (s->abandoned && rt_session_stopped(s)) {
			*p = s->next;
			rt_session_free(s);
		} else {
			p = &s->next;
		}
	}
}

bool rt_sessions_in_motion(void)
{
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->state == RT_SESSION_OBSERVING || s->old_filters ||
			(s->state >= RT_SESSION_CLOSING && s->state < RT_SESSION_STOPPED))
			return true;
	}
	return false;
}

void rt_sessions_set_clock(const struct rt_clock_line *line)
{
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->shm.clock)
			rt_clock_publish(s->shm.clock, line);
		for (uint32_t i = 0; i < s->if_count; i++) {
			struct rt_session_if *f = &s->ifs[i];

			if (f->nic_clock && !f->gone)
				rt_nic_clock_update(
					f->nic_clock, f->port.port_id, rt_clock_ns(line, rt_tsc()));
		}
	}
}

void rt_sessions_settle(void)
{
	for (int i = 0; i < 100 && !rt_teardown_late(); i++) {
		bool sets = rt_hook_reclaim(), moving = !rt_stats_reclaim();

		for (struct rt_session *s = rt_sessions; s; s = s->next) {
			moving |= s->state >= RT_SESSION_CLOSING && s->state < RT_SESSION_STOPPED &&
				  !rt_grace_over(&s->grace);
			moving |= s->old_filters && !rt_grace_over(&s->filter_grace);
		}
		if (sets && !moving)
			return;
		sched_yield();
	}
}

void rt_sessions_stop(uint64_t until_ms)
{
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->state < RT_SESSION_STOPPING)
			rt_session_stop(s);
	}
	for (bool stopped = false; !stopped && !rt_teardown_late() && rt_now_ms() < until_ms;) {
		rt_sessions_settle();
		stopped = true;
		for (struct rt_session *s = rt_sessions; s; s = s->next)
			stopped &= rt_session_stopped(s);
	}
}

bool rt_sessions_watch(void)
{
	for (struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->fates && s->state == RT_SESSION_ARMED)
			rt_fates_watch(s);
	}
	return rt_ports_moved();
}

bool rt_sessions_restless(void)
{
	for (const struct rt_session *s = rt_sessions; s; s = s->next) {
		if (s->fates)
			return true;
	}
	return rt_ports_restless();
}
