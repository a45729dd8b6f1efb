/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "request.h"

#define SNAPLEN_MAX 262144

static int refuse(char *err, const char *why)
{
	return rt_fail(-EINVAL, err, RT_TEXT_LEN, "request refused: %s", why);
}

static int check_target(struct rt_msg_target *w, uint32_t insn_count, char *err)
{
	if (memchr(w->port, 0, sizeof(w->port)) == NULL)
		return refuse(err, "port name is not terminated");
	if (!w->directions || w->directions & ~(RT_TARGET_RX | RT_TARGET_TX))
		return refuse(err, "unknown direction");
	if (w->queue != RT_QUEUE_ALL && w->queue > UINT16_MAX)
		return refuse(err, "no such queue");
	if (!w->snaplen || w->snaplen > SNAPLEN_MAX)
		return refuse(err, "snaplen is not within 1 to 262144");
	if (w->insn_first == RT_NO_FILTER)
		return 0;
	if (!w->insn_count || w->insn_count > RT_MAX_INSNS)
		return refuse(err, "filter is empty or too long");
	if (w->insn_first > insn_count || w->insn_count > insn_count - w->insn_first)
		return refuse(err, "filter lies outside of the message");
	return 0;
}

static bool knows_ids(const struct rt_msg_open *o)
{
	uint32_t flags = o->ids & ((1u << RT_IDS_SOURCE_SHIFT) - 1);

	if (o->h.type != RT_MSG_OPEN_IDS)
		return !o->ids;
	if (flags & RT_IDS_EVENTS && !(flags & RT_IDS_FATES))
		return false;
	return flags & RT_IDS_ON &&
	       !(flags & ~(RT_IDS_ON | RT_IDS_INFER | RT_IDS_FATES | RT_IDS_EVENTS)) &&
	       o->ids >> RT_IDS_SOURCE_SHIFT < 1u << RT_IDS_SOURCE_BITS;
}

/* A packet that is sent where nobody looks would count as not offered. */
static int check_fates(const struct rt_request *req, char *err)
{
	if (!(req->open.ids & RT_IDS_FATES))
		return 0;
	if (req->open.on_full != RT_ON_FULL_DROP || req->open.timestamp != RT_TIMESTAMP_TSC)
		return refuse(err, "fates cannot wait for the reader or use the NIC's time");
	if (req->open.flags & ~RT_OPEN_GROWS)
		return refuse(err, "fates cover all packets: leave out the sample, and what only "
				   "records of packets have");
	for (uint32_t i = 0; i < req->open.target_count; i++) {
		const struct rt_msg_target *w = &req->targets[i];

		if (w->directions != (RT_TARGET_RX | RT_TARGET_TX) || w->queue != RT_QUEUE_ALL)
			return refuse(err, "fates need all queues in both directions");
		if (w->insn_first != RT_NO_FILTER && !(req->open.ids & RT_IDS_EVENTS))
			return refuse(err, "fates cover all packets: leave out the filter");
	}
	return 0;
}

static int check_open(const struct rt_msg_open *o, size_t len, char *err)
{
	if (o->on_full > RT_ON_FULL_WAIT || o->flags & ~RT_OPEN_ALL ||
		o->timestamp > RT_TIMESTAMP_NIC || !knows_ids(o))
		return refuse(err, "unknown option");
	if (!o->target_count || o->target_count > RT_MAX_TARGETS)
		return refuse(err, "too few or too many ports");
	if (o->buffer_size > RT_BUFFER_MAX || o->buffer_most > RT_BUFFER_MAX)
		return refuse(err, "buffer is above 64 GiB");
	if (o->insn_count > RT_MSG_MAX / sizeof(struct rt_insn) ||
		len != sizeof(*o) + o->target_count * sizeof(struct rt_msg_target) +
				o->insn_count * sizeof(struct rt_insn) +
				(o->flags & RT_OPEN_SAMPLE ? sizeof(struct rt_msg_sample) : 0) +
				(o->flags & RT_OPEN_FIRST ? sizeof(struct rt_msg_first) : 0))
		return refuse(err, "length disagrees with its contents");
	return 0;
}

/* Moves *at behind it. */
static int take_sample(struct rt_request *req, const char **at, char *err)
{
	struct rt_msg_sample *m = &req->sample;

	if (!(req->open.flags & RT_OPEN_SAMPLE))
		return 0;
	memcpy(m, *at, sizeof(*m));
	*at += sizeof(*m);
	if (m->every < 2 || m->every > RT_SAMPLE_MAX || m->every & (m->every - 1) || m->reserved)
		return refuse(err, "sample is not a power of two up to 16777216");
	return 0;
}

static int take_first(struct rt_request *req, const char *at, char *err)
{
	struct rt_msg_first *m = &req->first;

	if (!(req->open.flags & RT_OPEN_FIRST))
		return 0;
	memcpy(m, at, sizeof(*m));
	if (!m->limit || m->limit > RT_FIRST_MAX || m->packets > 1 || m->inner > 1 || m->reserved)
		return refuse(err, "limit of flows is not within 1 to 2147483648");
	if (m->bits < RT_FIRST_BITS_MIN || m->bits > RT_FIRST_BITS_MAX)
		return refuse(err, "table of flows is not of 256 to 16384");
	return 0;
}

int rt_request_parse(struct rt_request *req, const void *msg, size_t len, char *err)
{
	size_t targets_size, insns_size;
	const char *at;
	int ret;

	*req = (struct rt_request){0};
	if (len < sizeof(req->open))
		return refuse(err, "message is too short");
	memcpy(&req->open, msg, sizeof(req->open));
	ret = check_open(&req->open, len, err);
	if (ret)
		return ret;
	targets_size = req->open.target_count * sizeof(*req->targets);
	insns_size = req->open.insn_count * sizeof(*req->insns);
	req->targets = malloc(targets_size);
	req->insns = insns_size ? malloc(insns_size) : NULL;
	if (!req->targets || (insns_size && !req->insns))
		return -ENOMEM;
	memcpy(req->targets, (const char *)msg + sizeof(req->open), targets_size);
	if (insns_size)
		memcpy(req->insns, (const char *)msg + sizeof(req->open) + targets_size,
			insns_size);
	at = (const char *)msg + sizeof(req->open) + targets_size + insns_size;
	ret = take_sample(req, &at, err);
	if (!ret)
		ret = take_first(req, at, err);
	for (uint32_t i = 0; i < req->open.target_count && !ret; i++)
		ret = check_target(&req->targets[i], req->open.insn_count, err);
	return ret ? ret : check_fates(req, err);
}

void rt_request_free(struct rt_request *req)
{
	free(req->targets);
	free(req->insns);
	req->targets = NULL;
	req->insns = NULL;
}

int rt_request_filter(
	const void *msg, size_t len, struct rt_insn **insns, uint32_t *count, char *err)
{
	struct rt_msg_filter m;
	size_t size;

	*insns = NULL;
	*count = 0;
	if (len < sizeof(m))
		return refuse(err, "message is too short");
	memcpy(&m, msg, sizeof(m));
	size = len - sizeof(m);
	if (m.insn_count > RT_MAX_INSNS || size != m.insn_count * sizeof(**insns))
		return refuse(err, "length disagrees with its contents");
	if (!size)
		return 0;
	*insns = malloc(size);
	if (!*insns)
		return -ENOMEM;
	memcpy(*insns, (const char *)msg + sizeof(m), size);
	*count = m.insn_count;
	return 0;
}
