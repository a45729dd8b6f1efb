/* SPDX-License-Identifier: BSD-3-Clause */
/* The request for a session, RT_MSG_OPEN. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/ipc.h"
#include "capture.h"

static int put_targets(struct ringtap_capture *cap, struct ringtap_conn *conn,
	const struct ringtap_target *targets, size_t count, struct rt_msg_target *out,
	struct rt_insn *insns)
{
	uint32_t at = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ringtap_target *w = &targets[i];
		const char *port = w->port ? w->port : "";

		if (strlen(port) >= sizeof(out[i].port))
			return rt_capture_fail(cap, -EINVAL, "port name is too long");
		rt_switch_device(conn, port, out[i].port);
		out[i].queue = w->queue < 0 ? RT_QUEUE_ALL : (uint32_t)w->queue;
		out[i].directions = (uint16_t)w->directions;
		out[i].linktype = w->linktype == RT_LINKTYPE_ETHERNET ? 0 : w->linktype;
		out[i].snaplen = w->snaplen ? w->snaplen : RINGTAP_SNAPLEN_MAX;
		out[i].insn_first = w->filter ? at : RT_NO_FILTER;
		out[i].insn_count = w->filter ? w->filter_len : 0;
		if (!w->filter)
			continue;
		memcpy(&insns[at], w->filter, w->filter_len * sizeof(*insns));
		at += w->filter_len;
	}
	return 0;
}

/* Applications of one capture get numbers, so that their ids differ. */
static uint32_t ids_of(uint32_t number, const struct ringtap_capture_options *o)
{
	static_assert(RT_MAX_SOURCES <= 1 << RT_IDS_SOURCE_BITS, "all have numbers");

	if (!o->ids && !o->fates)
		return 0;
	return RT_IDS_ON | (o->fates ? RT_IDS_FATES : 0) | (o->fate_ids ? RT_IDS_EVENTS : 0) |
	       (o->ids == RINGTAP_IDS_INFERRED ? RT_IDS_INFER : 0) | number << RT_IDS_SOURCE_SHIFT;
}

/* Memory that the probe may take: for the buffer, if its size is not given, and as much again for
 * the table of fates. Both have to be in half of what is available, with the other tables. */
static uint64_t most_of(const struct ringtap_capture_options *o, uint64_t most)
{
	const uint64_t both = 2 * (most - most / 16);
	uint64_t table = both > o->buffer_size ? both - o->buffer_size : 1;

	if (!o->fates)
		return most;
	if (!o->buffer_size)
		return both / 2;
	return table < RT_BUFFER_MAX ? table : RT_BUFFER_MAX;
}

/* Behind instructions, which leave it aligned to 4 bytes only. Returns its end. */
static char *put_sample(struct ringtap_capture *cap, uint32_t every, char *at)
{
	struct rt_msg_sample m = {.every = every};

	if (!cap->secret.word[0])
		secret_make(&cap->secret);
	memcpy(m.secret, cap->secret.word, sizeof(m.secret));
	memcpy(at, &m, sizeof(m));
	return at + sizeof(m);
}

static void put_first(const struct rt_source *s, const struct ringtap_capture_options *o, char *at)
{
	const struct rt_msg_first m = {.limit = o->first,
		.packets = o->first_packets,
		.inner = o->first_inner,
		.bits = (uint8_t)__builtin_ctz(s->flows)};

	memcpy(at, &m, sizeof(m));
}

int rt_capture_request(struct ringtap_capture *cap, const struct rt_source *s,
	const struct ringtap_target *targets, size_t count, const struct ringtap_capture_options *o,
	uint64_t most, bool grows)
{
	struct ringtap_conn *conn = s->conn;
	size_t insns = 0, len;
	struct rt_msg_open *m;
	char *at;
	int ret;

	for (size_t i = 0; i < count; i++)
		insns += targets[i].filter ? targets[i].filter_len : 0;
	len = sizeof(*m) + count * sizeof(struct rt_msg_target) + insns * sizeof(struct rt_insn) +
	      (o->sample > 1 ? sizeof(struct rt_msg_sample) : 0) +
	      (o->first ? sizeof(struct rt_msg_first) : 0);
	if (len > RT_MSG_MAX)
		return rt_capture_fail(cap, -E2BIG, "the filters are too long");
	m = calloc(1, len);
	if (!m)
		return rt_capture_fail(cap, -ENOMEM, "not enough memory");
	m->ids = ids_of(s->number, o);
	rt_msg_init(&m->h, m->ids ? RT_MSG_OPEN_IDS : RT_MSG_OPEN, (uint32_t)len);
	m->on_full = o->on_full == RINGTAP_WAIT ? RT_ON_FULL_WAIT : RT_ON_FULL_DROP;
	m->flags = (grows ? RT_OPEN_GROWS : 0) | (o->sample > 1 ? RT_OPEN_SAMPLE : 0) |
		   (o->mbufs ? RT_OPEN_MBUFS : 0) | (o->lengths ? RT_OPEN_LENGTHS : 0) |
		   (o->first ? RT_OPEN_FIRST : 0);
	m->timestamp = o->timestamp == RINGTAP_NIC ? RT_TIMESTAMP_NIC : RT_TIMESTAMP_TSC;
	m->buffer_size = o->buffer_size;
	m->buffer_most = most_of(o, most);
	m->target_count = (uint32_t)count;
	m->insn_count = (uint32_t)insns;
	ret = put_targets(cap, conn, targets, count, (struct rt_msg_target *)(m + 1),
		(struct rt_insn *)((struct rt_msg_target *)(m + 1) + count));
	at = (char *)m + sizeof(*m) + count * sizeof(struct rt_msg_target) +
	     insns * sizeof(struct rt_insn);
	if (o->sample > 1)
		at = put_sample(cap, o->sample, at);
	if (o->first)
		put_first(s, o, at);
	if (!ret) {
		ret = rt_msg_send(conn->fd, &m->h, NULL, 0);
		if (ret)
			rt_capture_fail(cap, ret, "cannot send the request to the probe");
	}
	free(m);
	return ret;
}
