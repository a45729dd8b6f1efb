/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "accept.h"
#include "common/atomics.h"
#include "conns.h"
#include "probe/dpdk/teardown.h"
#include "probe/tunables.h"

struct rt_conn *rt_conns;

static void abandon(struct rt_conn *c, const struct rt_clock_line *clock)
{
	struct rt_session *s = c->session;

	close(c->fd);
	rt_conn_cancel(c);
	rt_stats_detach(&c->monitor, clock);
	free(c);
	if (!s)
		return;
	s->abandoned = true;
	if (s->state < RT_SESSION_STOPPING)
		rt_session_stop(s);
}

/* The newest is first, so that of equals the oldest is found. NULL: all are in use. */
static struct rt_conn **most_silent(void)
{
	struct rt_conn **found = NULL;

	for (struct rt_conn **p = &rt_conns; *p; p = &(*p)->next) {
		const struct rt_conn *c = *p;

		if (!c->session && !c->monitor.attached && !c->job &&
			(!found || c->heard_ms <= (*found)->heard_ms))
			found = p;
	}
	return found;
}

static bool make_room(void)
{
	struct rt_conn **p, *c;
	unsigned n = 0;

	for (c = rt_conns; c; c = c->next)
		n++;
	if (n < RT_CONNS_MAX)
		return true;
	p = most_silent();
	if (!p)
		return false;
	c = *p;
	*p = c->next;
	rt_accept_refuse(c->fd, -EBUSY,
		"the application needed the connection, which was silent, for another reader; try "
		"again");
	free(c);
	return true;
}

void rt_conns_add(int fd, uint64_t now_ms)
{
	char full[RT_TEXT_LEN];
	struct rt_conn *c;

	if (!rt_accept_allows(fd)) {
		rt_accept_refuse(fd, -EPERM,
			"the application accepts readers of root and of its own user, as its user "
			"namespace maps them; run ringtap as one of them");
		return;
	}
	if (!make_room()) {
		snprintf(full, sizeof(full),
			"the application has %u readers, as many as it accepts; end one of them",
			RT_CONNS_MAX);
		rt_accept_refuse(fd, -EBUSY, full);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	*c = (struct rt_conn){.fd = fd, .heard_ms = now_ms, .next = rt_conns};
	rt_conns = c;
}

void rt_conns_serve(const struct pollfd *fds, const struct rt_conn *const *order, unsigned n,
	const struct rt_clock_line *clock)
{
	uint64_t now = rt_now_ms();

	for (struct rt_conn **p = &rt_conns; *p && !rt_teardown_begun();) {
		struct rt_conn *c = *p;
		bool ok = c->greeted || now - c->heard_ms < rt_load(&rt_probe_limits.greeting_ms);

		for (unsigned i = 0; i < n; i++) {
			if (order[i] == c && fds[i].revents) {
				ok = rt_conn_serve(c, clock);
				c->heard_ms = now;
			}
		}
		if (ok && rt_conn_advance(c, now, clock)) {
			p = &c->next;
		} else {
			*p = c->next;
			abandon(c, clock);
		}
	}
}

bool rt_conns_greeted(void)
{
	const struct rt_conn *c = rt_conns;

	while (c && !c->greeted)
		c = c->next;
	return c;
}

void rt_conns_abandon(bool sessions, const struct rt_clock_line *clock)
{
	for (struct rt_conn **p = &rt_conns; *p && !rt_teardown_late();) {
		struct rt_conn *c = *p;

		if (c->session && !sessions) {
			p = &c->next;
		} else {
			*p = c->next;
			abandon(c, clock);
		}
	}
}
