/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libringtap: what became of received packets. Errors, threads and ownership as in reader.h.
 *
 * A capture with the option `fates` has the packets that the application received and did not
 * offer to any port. Each is a packet of a run once a hook gets its mbuf again: its time is that
 * moment, its id the time of its reception (ns since the epoch); interface, queue and first bytes
 * are those of the reception. The counters of a tap (ringtap_capture_tap()) are those of these
 * packets; those of all received packets are here.
 *
 * With `fate_ids` beside it, the packets are events for a program that has them from another
 * capture of the same applications, attached in the same order and with `ids`: their id is that of
 * the other capture's packets, they have no bytes, and there are also those that become unknown. A
 * packet that the filter of its target refuses counts, and is not an event. What has no event was
 * offered, or is open (ringtap_open_packets_next()). Attach and start it before the other capture,
 * with all ports.
 */
#ifndef RINGTAP_FATES_H
#define RINGTAP_FATES_H

#include "reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Fates: count what became of received packets, and read those that are open ---------------
 *
 * An open packet is one of which nothing is known since its reception: the application has it, or
 * it has freed it, and no packet was received into its mbuf since. If the mbuf was found in its
 * pool, the packet is `free`: not offered, although no hook got the mbuf again yet. What is left is
 * held by the application, or was freed and lies in an RX descriptor, or in a pool that cannot be
 * read.
 */

/* Fate of a packet. */
enum ringtap_fate {
	RINGTAP_FATE_NONE,        /* the packet is not an event */
	RINGTAP_FATE_NOT_OFFERED, /* to any TX function, and its mbuf is used for something else */
	RINGTAP_FATE_UNKNOWN,     /* there was no room to note it, or others may have its buffer */
	RINGTAP_FATE_INFERRED,    /* unknown: likely offered, without the flag of its id */
	RINGTAP_FATE_UNSEEN,      /* unknown: a queue was sent to that had no hook yet, perhaps */
	RINGTAP_FATE_STOPPED      /* unknown: a port that was stopped has refused it, perhaps */
};

/* Counters of a receiving queue, since the capture began. received == offered + not_offered + free
 * + open + unknown; each is exact once no packet moves. Before, `free` and `open` are off by what
 * moves while the table is read, which takes up to some 100 ms with millions of mbufs. */
struct ringtap_fate_queue {
	uint32_t interface; /* file-wide id */
	uint16_t queue;
	uint64_t received;
	uint64_t offered;     /* to a TX function, which may have refused some of them */
	uint64_t not_offered; /* each was a packet of the capture, or lost */
	uint64_t free;        /* not offered either: in their pools when these were last read */
	uint64_t open;
	uint64_t unknown;  /* received while others had the mbuf, or without room to note it */
	uint64_t inferred; /* part of unknown: likely offered */
	/* Parts of unknown: not offered to any queue with a hook, and received before there were
	 * hooks on all queues, or while a port that the application sends to was stopped. */
	uint64_t unseen, stopped;
};

/* A mempool with open packets. */
struct ringtap_fate_pool {
	char name[RINGTAP_NAME_LEN];
	uint32_t size;       /* mbufs */
	bool walked;         /* false: of an unknown kind, free packets of it are among the open */
	uint64_t open, free; /* packets */
};

/* The library allocates it; entries are reached by the functions below. */
struct ringtap_fates {
	uint64_t taken_ns;  /* since the epoch */
	uint64_t walks;     /* readings of the pools so far; 0: `free` is not known yet */
	uint64_t walked_ns; /* since the epoch, when the last one began */
	uint32_t queue_count, pool_count;
	struct ringtap_array queues, pools;
	uint64_t open, free; /* packets of all queues, as the table of open packets has them */
	/* Packets that were sent with the id of a received one and without its first segment:
	 * rests of chains, and copies. Upper bound of the packets not offered that were. */
	uint64_t rest_offered;
	/* Mempools beyond those that are listed and walked: free packets of them are among the
	 * open. */
	uint32_t pools_beyond;
};

/* Reads the fates of application app (in order of attaching). The caller frees *out with
 * ringtap_fates_free(). -ENOENT: there is no such application; -ENODATA: it was attached without
 * `fates`; -EBADMSG: it has overwritten its clock; -ENOMEM; *out is NULL then. */
int ringtap_fates_read(const struct ringtap_capture *cap, uint32_t app, struct ringtap_fates **out);
void ringtap_fates_free(struct ringtap_fates *f);

RINGTAP_INLINE const struct ringtap_fate_queue *ringtap_fates_queue(
	const struct ringtap_fates *f, uint32_t i)
{
	return (const struct ringtap_fate_queue *)ringtap_array_at(&f->queues, i);
}

RINGTAP_INLINE const struct ringtap_fate_pool *ringtap_fates_pool(
	const struct ringtap_fates *f, uint32_t i)
{
	return (const struct ringtap_fate_pool *)ringtap_array_at(&f->pools, i);
}

/* Reasons that the application gave by ringtap_reason() (reason.h) have numbers: 0 is none, those
 * beyond the first 254 texts have the last one. */
#define RINGTAP_REASON_OTHERS 255

/* The text of reason number of application app (in order of attaching), from bytes that the
 * application may change. False: there is none (yet); out is "?" then. */
bool ringtap_capture_reason(const struct ringtap_capture *cap, uint32_t app, unsigned number,
	char out[RINGTAP_NAME_LEN]);

struct ringtap_open_packet {
	const uint8_t *data; /* a copy of its first bytes, until the next call */
	uint32_t caplen;     /* bytes at data */
	uint32_t length;     /* bytes on the wire; at least caplen */
	uint64_t ns;         /* reception, since the epoch: not after the iterator was made */
	uint32_t interface;  /* file-wide id */
	uint32_t queue;
	uint32_t pool;          /* index in the pools of a reading; RINGTAP_NO_INDEX: not known */
	bool free;              /* its mbuf was found in its pool: it is not held; see fate */
	uint64_t id;            /* as in a capture with `ids`, see above; 0: none */
	enum ringtap_fate fate; /* for a free one: not offered, or unknown for some reason */
	uint8_t reason;         /* see ringtap_capture_reason() */
	bool has_history;       /* history is known: it is a fraction of a second old */
	uint64_t mbuf;          /* address of its first mbuf, in the application */
	/* The last operations on that mbuf, as rte_mbuf_history.h of DPDK has them: 4 bits each,
	 * the newest in the lowest bits, 0: none. For DPDK 25.11 and later, which must have been
	 * built with RTE_MBUF_HISTORY_DEBUG. */
	uint64_t history;
};

/* An iterator over the open packets of an application, in no order. Packets that move meanwhile
 * may be missing; none is read twice. */
struct ringtap_open_packets;

/* The caller frees *out with ringtap_open_packets_free(), before the capture is closed. Errors as
 * ringtap_fates_read(). */
int ringtap_open_packets_create(
	struct ringtap_open_packets **out, const struct ringtap_capture *cap, uint32_t app);
void ringtap_open_packets_free(struct ringtap_open_packets *it);

/* The next one; NULL: there are no more. It lives until the next call. */
const struct ringtap_open_packet *ringtap_open_packets_next(struct ringtap_open_packets *it);

#ifdef __cplusplus
}
#endif

#endif
