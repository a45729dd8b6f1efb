/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces the filter of a running capture. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ipc.h"
#include "common/program.h"
#include "capture.h"
#include "retain.h"
#include "reader/export.h"
#include "reader/tunables.h"

static struct rt_msg_filter *make_request(const struct ringtap_insn *filter, uint32_t count)
{
	size_t size = count * sizeof(struct rt_insn);
	struct rt_msg_filter *m = malloc(sizeof(*m) + size);

	if (!m)
		return NULL;
	rt_msg_init(&m->h, RT_MSG_FILTER, (uint32_t)(sizeof(*m) + size));
	m->insn_count = count;
	if (size)
		memcpy(m + 1, filter, size);
	return m;
}

/* Waits for the answer to the last request. Its length, or -errno. */
static int await(struct ringtap_capture *cap, struct rt_source *s)
{
	int limit_ms = s->conn->timeout_ms ? s->conn->timeout_ms : rt_reader_limits.filter_ms;
	int ret = rt_conn_expect(
		s->conn, RT_MSG_FILTERED, NULL, 0, NULL, limit_ms, cap->error, sizeof(cap->error));

	if (ret >= 0 && ret != sizeof(struct rt_msg_filtered))
		ret = rt_capture_fail(cap, -EPROTO, "the probe sent an invalid answer");
	s->filtering = ret == -ETIMEDOUT;
	s->dead |= ret < 0 && !s->filtering;
	return ret;
}

/* Sends the filter to one application. The answer of a stopped application may be late: it is
 * received before the next request, and discarded. */
static int ask(struct ringtap_capture *cap, struct rt_source *s, const struct rt_msg_filter *m)
{
	struct rt_msg_filtered answer;
	int ret = s->filtering ? await(cap, s) : 0;

	if (ret >= 0) {
		ret = rt_msg_send(s->conn->fd, &m->h, NULL, 0);
		if (ret) {
			s->dead = true;
			rt_capture_fail(cap, ret, "cannot talk to the probe");
		}
	}
	if (ret >= 0)
		ret = await(cap, s);
	if (ret < 0)
		return ret == -EPIPE || ret == -ECONNRESET ? 0 : ret;
	memcpy(&answer, &s->conn->msg, sizeof(answer));
	if (!answer.code)
		return 0;
	rt_terminate(answer.text, sizeof(answer.text));
	return rt_capture_fail(
		cap, answer.code < 0 && answer.code > -4096 ? answer.code : -EPROTO, answer.text);
}

EXPORT bool ringtap_capture_filtering(const struct ringtap_capture *cap)
{
	bool any = false;

	for (uint32_t i = 0; i < cap->source_count; i++) {
		const struct rt_source *s = &cap->sources[i];

		any |= s->filtering && !s->dead && !s->stopped;
	}
	return any;
}

EXPORT int ringtap_filter_check(const struct ringtap_insn *filter, uint32_t count)
{
	static_assert(sizeof(*filter) == sizeof(struct rt_insn), "the same layout");
	return rt_program_valid((const struct rt_insn *)filter, count) ? 0 : -EINVAL;
}

EXPORT int ringtap_capture_filter(
	struct ringtap_capture *cap, const struct ringtap_insn *filter, uint32_t count)
{
	struct rt_msg_filter *m;
	int ret = 0;

	if (cap->window)
		return rt_capture_fail(cap, -EINVAL, "a window has no filter of its own");
	if (!filter)
		count = 0;
	if (count > RT_MAX_INSNS || (filter && !count))
		return rt_capture_fail(cap, -E2BIG, "the filter is empty or too long");
	m = make_request(filter, count);
	if (!m)
		return rt_capture_fail(cap, -ENOMEM, "not enough memory");
	for (uint32_t i = 0; i < cap->source_count && !ret; i++) {
		struct rt_source *s = &cap->sources[i];

		if (!s->dead && !s->stopped && !cap->stop_until_ns)
			ret = ask(cap, s, m);
	}
	free(m);
	rt_retain_lock(cap);
	rt_rings_follow(cap);
	rt_retain_unlock(cap);
	for (uint32_t i = 0; i < cap->in_count; i++) {
		struct rt_in *in = &cap->ins[i];

		/* Pairs with the release in rt_ring_publish(). Needs no check: it is only
		 * compared. */
		in->stale = rt_load_acquire(&cap->sources[in->source].seg.rings[in->index].head);
	}
	return ret;
}
