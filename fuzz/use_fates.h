/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions with fates, of more than one fuzzer. */
#ifndef RINGTAP_FUZZ_USE_FATES_H
#define RINGTAP_FUZZ_USE_FATES_H

#include <stdlib.h>
#include <string.h>

#include "reader/test_session.h"
#include "ringtap/fates.h"

/* Open packets of one pool, some of them free. */
static void put_fates(struct test_session *s)
{
	strcpy(s->pools[0].name, "pool");
	s->h->fate_pools = s->h->fate_walk = 1;
	for (uint32_t i = 0; i < 8; i++)
		*test_fate(s, i) = (struct rt_seg_fate){.mbuf = 64 * (i + 1),
			.id = i,
			.tap = i % 2,
			.state = RT_FATE_OPEN,
			.len = 100,
			.cap = 8 * i,
			.walk = i % 3,
			.pool = i % 2};
}

/* Reads them. Aborts where a number leads out of the capture. */
static void use_fates(const struct ringtap_capture *cap)
{
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;
	struct ringtap_fates *f;
	uint64_t sum = 0;

	if (ringtap_fates_read(cap, 0, &f))
		return;
	for (uint32_t i = 0; i < f->queue_count; i++)
		if (ringtap_fates_queue(f, i)->interface >= ringtap_capture_interface_count(cap))
			abort();
	for (uint32_t i = 0; i < f->pool_count; i++)
		if (strlen(ringtap_fates_pool(f, i)->name) >= RINGTAP_NAME_LEN)
			abort();
	if (ringtap_open_packets_create(&it, cap, 0))
		abort();
	for (; (p = ringtap_open_packets_next(it)); sum += p->data[0]) {
		if (!p->caplen)
			continue;
		sum += p->data[p->caplen - 1];
		if (p->caplen > RT_FATE_SNAP_MAX || p->caplen > p->length ||
			p->interface >= ringtap_capture_interface_count(cap) ||
			(p->pool != RINGTAP_NO_INDEX && p->pool >= RT_FATE_POOLS))
			abort();
	}
	__asm__ volatile("" : : "r"(sum)); /* the bytes are read */
	ringtap_open_packets_free(it);
	ringtap_fates_free(f);
}

#endif
