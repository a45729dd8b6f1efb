/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids of received packets, by which records of one packet are found in a file. The RX hook writes
 * an id into a dynamic field of the mbuf and sets a flag; records of received and of sent packets
 * have the id of their mbuf.
 *
 *   63     60 59     57 56  50 49    42 41                          0
 *   +--------+---------+------+--------+-----------------------------+
 *   | source | process | port | thread | number                      |
 *   +--------+---------+------+--------+-----------------------------+
 *
 * The number is the thread's, for all sessions: no id is given twice, and none of an earlier
 * session can be taken for a new one. It counts from 1 on, in a secondary from a number on that the
 * time gives, as one before may have had the same place. Packets pass between a primary process (0)
 * and its secondaries, which number themselves (rt_process_number()). The source is the session's:
 * a reader gives one to each of its applications, the same to all processes of one. In the mbuf
 * these bits are free; the top one marks an id as sent, the next one as sent by the last hook only
 * (ids.c).
 *
 * Field and flag are not those of latency.c. A latency is measured once, an id is that of each
 * sending: of a packet that the driver refuses and gets again, or that is sent to several ports.
 * And there is no tag with the mbuf's address: clones and copies shall have the id of the packet
 * that they were made of, and rte_pktmbuf_clone() and rte_pktmbuf_copy() take flag and field
 * along. What an application fills itself has no flag, as rte_pktmbuf_reset() clears it.
 *
 * Applications that reset ol_flags lose the flag. Where the session requests it, a packet without
 * it is inferred to have been received, under the conditions of latency.c. Hence the port in the
 * id, and the mark.
 */
#ifndef RINGTAP_PROBE_CAPTURE_IDS_H
#define RINGTAP_PROBE_CAPTURE_IDS_H

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "probe/dpdk/mbuf_field.h"
#include "session.h"

/* Set before the first tap with ids is linked. */
extern struct rt_mbuf_field rt_ids;

/* 0 or -errno; then a sentence is in err (RT_TEXT_LEN bytes). Control lock held. */
int rt_ids_register(char *err);

/* In the RX hook, before the first record is written: gives ids to n packets that a port has
 * received. Packets that others hold as well keep what they have. */
void rt_ids_stamp(struct rt_thread *t, uint16_t port, struct rte_mbuf **pkts, unsigned n);

/* The same in steps, for a caller that does more with each packet. */
struct rt_ids_run {
	uint64_t flag; /* mbufs with an id have it */
	uint64_t common, number;
	int32_t offset; /* where the field is */
};
/* Takes the next n ids of the thread: a jump out of the hook must not give them again. False: the
 * field is not registered. */
bool rt_ids_take(struct rt_ids_run *run, struct rt_thread *t, uint16_t port, unsigned n);
/* Gives the next n of them to packets. */
void rt_ids_give_all(struct rt_ids_run *run, struct rte_mbuf **pkts, unsigned n);
/* Gives an id to a packet of any shape, all its segments. */
void rt_ids_give(struct rte_mbuf *m, uint64_t id);

/* In the TX hook, after the last record: no packet is inferred to be one of these again. */
void rt_ids_use(struct rte_mbuf **pkts, unsigned n);
/* The last rt_ids_use() of these packets did not happen: they were refused. */
void rt_ids_unuse(struct rte_mbuf **pkts, unsigned n);

/* The id of a packet whose first segment has no flag, without the source; 0: none. */
uint64_t rt_ids_search(const struct rte_mbuf *m, bool infer);

#define RT_ID_SOURCE_SHIFT  (64 - RT_IDS_SOURCE_BITS)
#define RT_ID_MASK          ((1ull << RT_ID_SOURCE_SHIFT) - 1)
#define RT_ID_PROCESS_SHIFT 57
#define RT_ID_PORT_SHIFT    50
#define RT_ID_PORT_MASK     ((1u << (RT_ID_PROCESS_SHIFT - RT_ID_PORT_SHIFT)) - 1)
#define RT_ID_THREAD_SHIFT  42
#define RT_ID_NUMBER_MASK   ((1ull << RT_ID_THREAD_SHIFT) - 1)

/* The next id of those that were taken. */
static inline uint64_t rt_ids_next(struct rt_ids_run *run)
{
	return run->common | (++run->number & RT_ID_NUMBER_MASK);
}

/* Whether it may be an id of packets that this port has received. */
static inline bool rt_ids_has_port(uint64_t id, uint16_t port)
{
	return (id >> RT_ID_PORT_SHIFT & RT_ID_PORT_MASK) == (port & RT_ID_PORT_MASK);
}

static inline __attribute__((always_inline)) uint64_t rt_ids_of(const struct rte_mbuf *m,
	const struct rt_tap *tap, enum rt_direction dir, uint64_t flag, int32_t offset)
{
	uint64_t id;

	if (dir == RT_DIR_RX) {
		/* Without an id of its own, rather than with that of the reception before. */
		if (rt_unlikely(!(m->ol_flags & flag) || rte_mbuf_refcnt_read(m) != 1))
			return 0;
		id = *RTE_MBUF_DYNFIELD(m, offset, const uint64_t *);
	} else if (rt_likely(m->ol_flags & flag)) {
		id = *RTE_MBUF_DYNFIELD(m, offset, const uint64_t *);
	} else {
		id = rt_ids_search(m, tap->ids & RT_IDS_INFER);
	}
	id &= RT_ID_MASK;
	return rt_likely(id != 0) ? id | tap->id_source : 0;
}

#endif
