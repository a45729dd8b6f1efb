/* SPDX-License-Identifier: BSD-3-Clause */
/* See ids.h. All but the registration runs in the polling threads. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/fail.h"
#include "ids.h"
#include "probe/dpdk/secondary.h"

#define USED      (1ull << 63)
#define USED_LAST (1ull << 62) /* by the last rt_ids_use(), not before */
#define PACKET_NS 16 /* less than a thread takes for one, and the numbers last for 19 hours */

#define AHEAD        4  /* packets */
#define SEGMENTS_MAX 4u /* that are searched: headers of the application, then the packet */

static_assert(RT_MAX_THREADS <= 1u << (RT_ID_PORT_SHIFT - RT_ID_THREAD_SHIFT), "the thread fits");

struct rt_mbuf_field rt_ids;
static uint64_t process; /* this process's bits of an id, in their place */
static uint64_t before;  /* number that its threads start after */

static_assert(RT_PROCESSES_MAX <= 1u << (RT_ID_SOURCE_SHIFT - RT_ID_PROCESS_SHIFT), "it fits");

int rt_ids_register(char *err)
{
	int number = rt_process_number();

	if (number < 0)
		return rt_fail(-ENOTSUP, err, RT_TEXT_LEN,
			"ids of packets need a number of this secondary process, by a lock on the "
			"file ringtap.ids in the runtime folder: %s",
			number == -EBUSY ? "more than 7 processes have one" : strerror(-number));
	/* Another secondary may have had the number and may have ended. */
	if (number && !process)
		rt_store(&before, rt_time_ns(CLOCK_BOOTTIME) / PACKET_NS);
	rt_store(&process, (uint64_t)number << RT_ID_PROCESS_SHIFT);
	return rt_mbuf_field_register(&rt_ids, "ringtap_dynfield_packet_id",
		"ringtap_dynflag_packet_id", "an id of each packet", err);
}

/* Other holders may exist: then nothing in the mbuf may be written. */
static inline bool is_shared(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) != 1;
}

static inline uint64_t *field_of(struct rte_mbuf *m, int32_t offset)
{
	return RTE_MBUF_DYNFIELD(m, offset, uint64_t *);
}

static inline void stamp(struct rte_mbuf *m, uint64_t flag, int32_t offset, uint64_t id)
{
	if (rt_unlikely(is_shared(m)))
		return;
	m->ol_flags |= flag;
	*field_of(m, offset) = id;
}

static inline bool take(struct rt_ids_run *run, struct rt_thread *t, uint16_t port, unsigned n)
{
	*run = (struct rt_ids_run){.flag = rt_load(&rt_ids.flag),
		.common = rt_load(&process) |
			  (uint64_t)(port & RT_ID_PORT_MASK) << RT_ID_PORT_SHIFT |
			  (uint64_t)t->index << RT_ID_THREAD_SHIFT,
		.number = t->ids + rt_load(&before),
		.offset = rt_load(&rt_ids.offset)};
	if (rt_unlikely(!run->flag))
		return false;
	rt_store(&t->ids, t->ids + n);
	rt_compiler_barrier();
	return true;
}

bool rt_ids_take(struct rt_ids_run *run, struct rt_thread *t, uint16_t port, unsigned n)
{
	return take(run, t, port, n);
}

/* The application may cut the first segments off: what is left must not have the id that its mbuf
 * had in an earlier use. */
void rt_ids_give(struct rte_mbuf *m, uint64_t id)
{
	const uint64_t flag = rt_load(&rt_ids.flag);
	const int32_t offset = rt_load(&rt_ids.offset);

	for (unsigned segs = m->nb_segs ? m->nb_segs : 1u; m && segs; m = m->next, segs--)
		stamp(m, flag, offset, id);
}

static inline void give_all(struct rt_ids_run *run, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_ids_run r = *run; /* in registers */

	for (unsigned i = 0; i < RTE_MIN(n, (unsigned)AHEAD); i++)
		__builtin_prefetch(field_of(pkts[i], r.offset), 1, 3);
	for (unsigned i = 0; i < n; i++) {
		uint64_t id = rt_ids_next(&r);

		if (i + AHEAD < n)
			__builtin_prefetch(field_of(pkts[i + AHEAD], r.offset), 1, 3);
		if (rt_likely(pkts[i]->nb_segs <= 1))
			stamp(pkts[i], r.flag, r.offset, id);
		else
			rt_ids_give(pkts[i], id);
	}
	run->number = r.number;
}

void rt_ids_give_all(struct rt_ids_run *run, struct rte_mbuf **pkts, unsigned n)
{
	give_all(run, pkts, n);
}

void rt_ids_stamp(struct rt_thread *t, uint16_t port, struct rte_mbuf **pkts, unsigned n)
{
	struct rt_ids_run run;

	if (rt_likely(take(&run, t, port, n)))
		give_all(&run, pkts, n);
}

/* Packets that the application has made have no port. */
static uint64_t infer_id(const struct rte_mbuf *m)
{
	uint64_t id;

	if (m->port == RTE_MBUF_PORT_INVALID || is_shared(m) || RTE_MBUF_CLONED(m))
		return 0;
	id = *RTE_MBUF_DYNFIELD(m, rt_load(&rt_ids.offset), const uint64_t *);
	if (id & USED || !rt_ids_has_port(id, m->port))
		return 0;
	return id;
}

uint64_t rt_ids_search(const struct rte_mbuf *m, bool infer)
{
	const uint64_t flag = rt_load(&rt_ids.flag);
	const struct rte_mbuf *s = m->next;

	for (unsigned segs = RTE_MIN(m->nb_segs, SEGMENTS_MAX); s && segs > 1;
		s = s->next, segs--) {
		uint64_t id;

		if (!(s->ol_flags & flag))
			continue;
		id = *RTE_MBUF_DYNFIELD(s, rt_load(&rt_ids.offset), const uint64_t *);
		/* Drivers may fill a segment without clearing the flags of its last use: what
		 * another port has received since has that one's number. */
		if (m->port == RTE_MBUF_PORT_INVALID || rt_ids_has_port(id, m->port))
			return id;
	}
	return infer ? infer_id(m) : 0;
}

static inline uint64_t used(uint64_t id)
{
	return id & USED ? id & ~USED_LAST : id | USED | USED_LAST;
}

static inline uint64_t unused(uint64_t id)
{
	return id & USED_LAST ? id & ~(USED | USED_LAST) : id;
}

static inline __attribute__((always_inline)) void mark(
	struct rte_mbuf **pkts, unsigned n, uint64_t (*marked)(uint64_t id))
{
	const int32_t offset = rt_load(&rt_ids.offset);

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		/* Made by the application: nothing is inferred of it. */
		if (m->port == RTE_MBUF_PORT_INVALID)
			continue;
		for (unsigned segs = m->nb_segs; m && segs; m = m->next, segs--) {
			if (!is_shared(m))
				*field_of(m, offset) = marked(*field_of(m, offset));
		}
	}
}

void rt_ids_use(struct rte_mbuf **pkts, unsigned n)
{
	mark(pkts, n, used);
}

void rt_ids_unuse(struct rte_mbuf **pkts, unsigned n)
{
	mark(pkts, n, unused);
}
