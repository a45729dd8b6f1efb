/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds the pcapng blocks that surround the packets (IETF draft-ietf-opsawg-pcapng), in host byte
 * order. The packets themselves are written by the probe, see segment.h.
 *
 * Block (section 3.1)                      Option (section 3.5)
 *  +---------------------------+            +-------------+--------------+
 *  | type               32 bit |            | code 16 bit | length 16 bit|
 *  | total length       32 bit |            +-------------+--------------+
 *  | body, padded to 32 bit    |            | value, padded to 32 bit    |
 *  | options, opt_endofopt     |            +----------------------------+
 *  | total length again 32 bit |            length does not count the padding
 *  +---------------------------+
 *
 * Functions write at most size bytes to buf and return the length of the block, -EMSGSIZE if a text
 * is longer than RT_PCAPNG_TEXT_MAX. What is in buf after an error, or if the length is more than
 * size, is undefined. Texts that are NULL or empty are left out.
 */
#ifndef RINGTAP_COMMON_PCAPNG_H
#define RINGTAP_COMMON_PCAPNG_H

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "segment.h"

#define RT_PCAPNG_SHB      0x0a0d0d0au
#define RT_PCAPNG_IDB      1u
#define RT_PCAPNG_ISB      5u
#define RT_PCAPNG_MAGIC    0x1a2b3c4du
#define RT_PCAPNG_TEXT_MAX 65535u

/*
 * Section Header Block (section 4.1), the start of every file:
 *   0x0a0d0d0a | total length | magic | major 16, minor 16 | section length 64 (-1: unknown) |
 * options
 */
struct rt_pcapng_shb {
	const char *hardware;    /* shb_hardware, e.g. the machine */
	const char *os;          /* shb_os */
	const char *application; /* shb_userappl */
	const char *comment;     /* opt_comment */
	const char *const *more; /* further comments, NULL behind the last; or NULL */
};
ssize_t rt_pcapng_shb(void *buf, size_t size, const struct rt_pcapng_shb *shb);

/*
 * Interface Description Block (section 4.2). Its place among the IDBs of the section is the
 * interface id of the packets.
 *   1 | total length | linktype 16, reserved 16 | snaplen | options
 */
struct rt_pcapng_idb {
	const char *name;        /* if_name */
	const char *description; /* if_description */
	const uint8_t *mac;      /* if_MACaddr, 6 bytes; NULL: left out */
	uint64_t speed_bits;     /* if_speed [bit/s]; 0: unknown, left out */
	const char *hardware;    /* if_hardware: the driver */
	const char *os;          /* if_os */
	const char *filter;      /* if_filter: a libpcap expression (kind 0) */
	uint16_t linktype;       /* LINKTYPE_…; 0: Ethernet */
	uint32_t snaplen;        /* bytes; 0: no limit */
	const char *comment;     /* opt_comment */
	const char *remark[3];   /* further ones */
};
/* if_tsresol is always 9: nanoseconds. */
ssize_t rt_pcapng_idb(void *buf, size_t size, const struct rt_pcapng_idb *idb);

/*
 * Interface Statistics Block (section 4.6): counts from the beginning of the capture, also where
 * the capture is spread over several files.
 *   5 | total length | interface id | time high 32 | time low 32 | options
 *
 *           on the wire
 *                |---------> ifdrop        lost before (missed, and no mbuf)
 *             ifrecv                       seen by the probe
 *                |---------> (filtered, not sampled)
 *           filteraccept
 *                |---------> osdrop        lost by the capture
 *            usrdeliv                      in this capture
 */
#define RT_PCAPNG_NONE        UINT64_MAX /* leave the option out */
#define RT_PCAPNG_COMMENTS    5u         /* comments of an ISB */
#define RT_PCAPNG_COMMENT_MAX 200u       /* bytes of each */
#define RT_PCAPNG_ISB_MAX     (24 + RT_PCAPNG_COMMENTS * (4 + RT_PCAPNG_COMMENT_MAX) + 7 * 12 + 4)
struct rt_pcapng_isb {
	uint32_t interface_id;
	uint64_t time_ns;      /* since the epoch, when the counts were read */
	uint64_t starttime_ns; /* isb_starttime, since the epoch */
	uint64_t endtime_ns;   /* isb_endtime; RT_PCAPNG_NONE while it goes on */
	uint64_t ifrecv;       /* packets; these five may be RT_PCAPNG_NONE */
	uint64_t ifdrop;
	uint64_t filteraccept;
	uint64_t osdrop;
	uint64_t usrdeliv;
	const char *comment[RT_PCAPNG_COMMENTS]; /* cut at RT_PCAPNG_COMMENT_MAX */
};
ssize_t rt_pcapng_isb(void *buf, size_t size, const struct rt_pcapng_isb *isb);

/*
 * Fates Block, of local use (section 3.1: the top bit of its type is set), which other readers
 * skip: what became of received packets, see docs/format.md, Fates in files. 0x80525446 | total
 * length | kind 16, bytes of an entry 16 | entries | time high 32, low 32 | entries | total length
 */
#define RT_PCAPNG_FATES 0x80525446u
#define RT_FATES_FIXED  16u   /* bytes between the lengths and the entries */
#define RT_FATES_MOST   4096u /* entries of a block of ours */

enum rt_fates_kind {
	RT_FATES_BEGIN = 1, /* no entries: fates of this file's packets follow, here or later */
	RT_FATES_PACKETS,   /* struct rt_fates_packet */
	RT_FATES_END,       /* struct rt_fates_queue, of all queues: no fates follow */
	RT_FATES_REASONS,   /* struct rt_fates_reason, before the first packets with these */
};

/* Fate of a packet. */
enum rt_fates_fate {
	RT_FATES_NOT_OFFERED = 1,
	RT_FATES_UNKNOWN,
	RT_FATES_INFERRED, /* unknown: likely offered */
	RT_FATES_OPEN,     /* at the end of the recording */
};

/* Why it is unknown. */
enum rt_fates_why {
	RT_FATES_WHY_OTHER,
	RT_FATES_WHY_UNSEEN,  /* perhaps sent on a queue that had no hook yet */
	RT_FATES_WHY_STOPPED, /* perhaps refused by a port that was stopped */
};

struct rt_fates_packet {
	uint64_t id;              /* epb_packetid */
	uint32_t ns_high, ns_low; /* since the epoch: when it was noticed */
	uint32_t interface;       /* that has received it */
	uint16_t queue;
	uint8_t fate; /* enum rt_fates_fate */
	uint8_t why;  /* enum rt_fates_why; of RT_FATES_NOT_OFFERED: number of its reason, or 0 */
};
static_assert(sizeof(struct rt_fates_packet) == 24, "docs/format.md");

/* A reason that the application gave, for packets of this file. */
struct rt_fates_reason {
	uint8_t source; /* the top bits of the ids of its packets */
	uint8_t number;
	char text[62]; /* with a final zero */
};
static_assert(sizeof(struct rt_fates_reason) == 64, "docs/format.md");
#define RT_FATES_SOURCE_SHIFT 60 /* in ids */

/* All packets of a receiving queue since the recording began: received = offered + not_offered +
 * open + unknown. */
struct rt_fates_queue {
	uint32_t interface;
	uint16_t queue, reserved;
	uint64_t received, offered, not_offered, open, unknown;
	uint64_t inferred; /* part of unknown */
	uint64_t lost;     /* fates of packets of the file that are missing in it */
};
static_assert(sizeof(struct rt_fates_queue) == 64, "docs/format.md");

#define RT_PCAPNG_FATES_MAX (12 + RT_FATES_FIXED + RT_FATES_MOST * 64)
/*
 * Intervals Block, of local use like that of fates: what polling threads did, see docs/format.md,
 * Intervals in files. 0x80525449 | total length | version 16, kind 16 | bytes of an entry 16,
 * reserved 16 | entries | reserved | entries | total length
 */
#define RT_PCAPNG_INTERVALS  0x80525449u
#define RT_INTERVALS_VERSION 1
#define RT_INTERVALS_MOST    4096u /* entries of a block of ours */

struct rt_intervals_head {
	uint32_t type, total;
	uint16_t version, kind; /* enum rt_intervals_kind */
	uint16_t entry_bytes, reserved0;
	uint32_t count, reserved1;
};
static_assert(sizeof(struct rt_intervals_head) == 24, "docs/format.md");

enum rt_intervals_kind {
	RT_INTERVALS_THREADS = 1, /* struct rt_intervals_thread */
	RT_INTERVALS_ENTRIES,     /* struct rt_intervals_entry */
	RT_INTERVALS_LOSSES,      /* struct rt_intervals_loss */
};

struct rt_intervals_thread {
	uint32_t thread; /* number in the entries */
	uint32_t lcore;  /* UINT32_MAX: none */
	uint32_t tid;    /* in the application's PID namespace; 0: unknown */
	uint32_t reserved;
	char name[16];
};
static_assert(sizeof(struct rt_intervals_thread) == 32, "docs/format.md");

struct rt_intervals_entry {
	uint32_t ns_high, ns_low; /* since the epoch: where it begins */
	uint64_t ns;
	uint32_t thread;
	uint32_t packets;
	uint32_t interface; /* UINT32_MAX: unknown, or not in the file */
	uint16_t queue;
	uint8_t kind;  /* enum rt_stat_interval_kind */
	uint8_t cause; /* 0: not looked for */
};
static_assert(sizeof(struct rt_intervals_entry) == 32, "docs/format.md");

/* Between these times some are missing. */
struct rt_intervals_loss {
	uint32_t from_high, from_low, to_high, to_low;
	uint64_t count; /* at least */
};
static_assert(sizeof(struct rt_intervals_loss) == 24, "docs/format.md");

/* entries: of this kind; ns: since the epoch, when the last of them was known. */
ssize_t rt_pcapng_fates(void *buf, size_t size, enum rt_fates_kind kind, uint64_t ns,
	const void *entries, uint32_t count);

#endif
