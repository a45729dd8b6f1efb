/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of a run. Its records were checked when it was returned, but the application can
 * change them, so every field is read once and checked again. */
#include <errno.h>
#include <stdlib.h>

#include "common/record.h"
#include "capture.h"
#include "reader/export.h"

#define BATCH 64u /* whose packets fit into the L1 cache */

struct rt_packets {
	struct ringtap_packets pub;
	const uint8_t *at;  /* the record after the batch; pub.left bytes follow */
	const uint8_t *end; /* end of the run */
	uint64_t packets;   /* packets of the run, after the batch */
	const uint32_t *interfaces;
	uint32_t interface_count;
	enum ringtap_fields fields;
	int error;
	struct ringtap_packet batch[BATCH];
};

EXPORT int ringtap_packets_create(struct ringtap_packets **out)
{
	struct rt_packets *it = calloc(1, sizeof(*it));

	*out = NULL;
	if (!it)
		return -ENOMEM;
	it->pub.stride = sizeof(it->batch[0]);
	it->pub.next = it->pub.end = (const char *)it->batch;
	*out = &it->pub;
	return 0;
}

EXPORT void ringtap_packets_free(struct ringtap_packets *it)
{
	free(it); /* its first member */
}

EXPORT void ringtap_packets_start(struct ringtap_packets *pub, const struct ringtap_run *run)
{
	struct rt_packets *it = (struct rt_packets *)pub;

	it->pub.next = it->pub.end = (const char *)it->batch;
	it->pub.left = run->bytes;
	it->packets = run->packets;
	it->at = run->records;
	it->end = it->at + run->bytes;
	it->interfaces = run->interfaces;
	it->interface_count = run->interface_count;
	it->error = 0;
}

EXPORT void ringtap_packets_fields(struct ringtap_packets *pub, enum ringtap_fields fields)
{
	struct rt_packets *it = (struct rt_packets *)pub;
	const struct ringtap_packet *next = (const struct ringtap_packet *)pub->next;

	if (it->fields == fields)
		return;
	it->fields = fields;
	if (pub->next == pub->end)
		return;
	/* Packets read ahead are read again. */
	it->packets += (uint64_t)((const struct ringtap_packet *)pub->end - next);
	it->at = next->data - RT_EPB_HEADER;
	pub->left = (uint64_t)(it->end - it->at);
	pub->end = pub->next;
	it->error = 0;
}

EXPORT int ringtap_packets_error(const struct ringtap_packets *pub)
{
	return ((const struct rt_packets *)pub)->error;
}

static void take_options(struct ringtap_packet *p, const uint8_t *record, const struct rt_record *r)
{
	struct rt_options o;
	uint32_t way;

	rt_record_options(record, r, &o);
	way = o.flags & RT_FLAGS_DIRECTION;
	p->direction = way == 1 ? RINGTAP_RX : way == 2 ? RINGTAP_TX : 0;
	p->queue = o.queue;
	p->has_hash = o.has_hash;
	p->hash = o.hash;
	p->fate = o.flags >> RT_EVENT_SHIFT & RT_EVENT_MASK;
	p->reason = o.flags >> RT_REASON_SHIFT & RT_REASON_MASK;
	p->dropcount = o.dropcount;
	p->id = o.id;
}

/* The source of a batch. Local to the loop, so that the compiler can keep it in registers. */
struct source {
	const uint8_t *at;
	uint64_t left;
	const uint32_t *interfaces;
	uint32_t interface_count;
};

/* The next record into p. False: it is invalid. */
__attribute__((always_inline)) static inline bool take(
	struct source *s, struct ringtap_packet *p, bool all)
{
	struct rt_record r;

	if (rt_unlikely(rt_record_read(s->at, s->left, &r) != NULL) ||
		rt_unlikely(r.if_index >= s->interface_count))
		return false;
	p->data = s->at + RT_EPB_HEADER;
	p->caplen = r.cap_len;
	p->length = r.orig_len;
	p->ns = r.ns;
	p->interface = s->interfaces ? s->interfaces[r.if_index] : r.if_index;
	if (all)
		take_options(p, s->at, &r);
	s->at += r.len;
	s->left -= r.len;
	return true;
}

/* Returns the number of packets, up to max; fewer at the end, or before an invalid record. */
__attribute__((always_inline)) static inline unsigned take_batch(
	struct source *s, struct ringtap_packet *batch, unsigned max, bool all)
{
	unsigned n = 0;

	while (n < max && s->left && rt_likely(take(s, &batch[n], all)))
		n++;
	return n;
}

EXPORT bool ringtap_packets_fill(struct ringtap_packets *pub)
{
	struct rt_packets *it = (struct rt_packets *)pub;
	struct source s = {it->at, pub->left, it->interfaces, it->interface_count};
	unsigned max = it->packets < BATCH ? (unsigned)it->packets : BATCH;
	unsigned n = it->fields == RINGTAP_FIELDS_BASIC ? take_batch(&s, it->batch, max, false)
							: take_batch(&s, it->batch, max, true);

	it->packets -= n;
	/* An invalid record, or another number of records than when the run was returned. */
	if (rt_unlikely(s.left ? n < BATCH : it->packets != 0)) {
		it->error = -EBADMSG;
		s.left = 0;
	}
	it->at = s.at;
	pub->left = s.left;
	pub->next = (const char *)it->batch;
	pub->end = (const char *)&it->batch[n];
	return n > 0;
}
