/* SPDX-License-Identifier: BSD-3-Clause */
/* Another filter for a capture that runs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ipc.h"
#include "capture.h"
#include "export.h"

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

/* Asks one application. Who has not answered is given up: its answer could come at any time. */
static int ask(struct ringtap_capture *cap, struct rt_source *s, const struct rt_msg_filter *m)
{
	struct rt_msg_filtered answer;
	int ret = rt_msg_send(s->conn->fd, &m->h, NULL, 0);

	if (!ret)
		ret = rt_conn_expect(s->conn, RT_MSG_FILTERED, NULL, 0, NULL, rt_answer_ms,
			cap->error, sizeof(cap->error));
	if (ret >= 0 && ret != sizeof(answer))
		ret = rt_capture_fail(cap, -EPROTO, "the probe answers nonsense");
	if (ret < 0) {
		s->dead = true;
		return ret == -EPIPE || ret == -ECONNRESET ? 0 : ret;
	}
	memcpy(&answer, &s->conn->msg, sizeof(answer));
	if (!answer.code)
		return 0;
	answer.text[sizeof(answer.text) - 1] = 0;
	return rt_capture_fail(
		cap, answer.code < 0 && answer.code > -4096 ? answer.code : -EPROTO, answer.text);
}

EXPORT int ringtap_capture_filter(
	struct ringtap_capture *cap, const struct ringtap_insn *filter, uint32_t count)
{
	struct rt_msg_filter *m;
	int ret = 0;

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
	for (uint32_t i = 0; i < cap->in_count; i++) {
		struct rt_in *in = &cap->ins[i];

		/* Pairs with the release in rt_ring_publish(). Whatever it is: it is compared only.
		 */
		in->stale = rt_load_acquire(&cap->sources[in->source].seg.rings[in->index].head);
	}
	return ret;
}
