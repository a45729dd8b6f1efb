/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages between reader and probe, over a Unix SOCK_SEQPACKET socket
 * `ringtap.sock` in the application's DPDK runtime folder. docs/format.md describes
 * the exchange. One message is one datagram; every message begins with rt_msg_header.
 */
#ifndef RINGTAP_COMMON_PROTO_H
#define RINGTAP_COMMON_PROTO_H

#include <assert.h>
#include <stdint.h>

#include "segment.h"

#define RT_PROTO_MAGIC      0x70617472u /* "rtap" */
#define RT_PROTO_VERSION    4
#define RT_SOCKET_NAME      "ringtap.sock"
#define RT_SOCKET_SECONDARY RT_SOCKET_NAME "@" /* and the process id */
#define RT_SOCKET_NAME_MAX  32                 /* with its number */
/* Where the runtime folder cannot have a socket, its name is abstract (unix(7)): this, the
 * file-prefix, a slash, and the process id in the application's PID namespace. */
#define RT_ABSTRACT_NAME    "ringtap.sock/"
#define RT_INSTANCES_MAX    256 /* applications of one runtime folder: "ringtap.sock:1" and so on */
#define RT_TELEMETRY_ATTACH "/ringtap/attach"
#define RT_TELEMETRY_WAKE   "wake"       /* its parameter: also after RT_MSG_DETACH */
#define RT_MSG_MAX          (160u << 10) /* bytes; a larger datagram is refused */
#define RT_MAX_TARGETS      64
#define RT_MAX_INSNS        4096 /* BPF_MAXINSNS */
#define RT_TEXT_LEN         256

enum rt_msg_type {
	RT_MSG_NONE = 0, /* is never sent */
	/* reader to probe */
	RT_MSG_HELLO = 1, /* rt_msg_hello; answered by RT_MSG_WELCOME or RT_MSG_ERROR */
	RT_MSG_LIST,      /* no body; answered by RT_MSG_PORTS, then RT_MSG_SESSIONS */
	RT_MSG_OPEN,      /* rt_msg_open and what follows it; RT_MSG_LAYOUT or RT_MSG_ERROR */
	RT_MSG_START,     /* no body; packets flow; answered by RT_MSG_STARTED */
	RT_MSG_STOP,      /* no body; answered by RT_MSG_STOPPED once no producer is left */
	RT_MSG_MONITOR,   /* rt_msg_monitor; RT_MSG_MONITORING or RT_MSG_ERROR; may be repeated */
	RT_MSG_FILTER, /* rt_msg_filter; answered by RT_MSG_FILTERED once no thread uses the old one
			*/
	RT_MSG_MEMORY, /* no body; carries RT_FD_COUNT descriptors; RT_MSG_OPENED or RT_MSG_ERROR */
	RT_MSG_DETACH, /* no body; the probe ends all sessions and closes all connections, and wakes
			* at the parameter RT_TELEMETRY_WAKE or ringtap_probe_start() only */
	RT_MSG_OPEN_IDS, /* as RT_MSG_OPEN, with ids in it; earlier probes answer RT_MSG_ERROR */
	RT_MSG_GROW, /* no body; carries a descriptor: the next memory of the buffer, if the request
		      * had RT_OPEN_GROWS; answered by RT_MSG_GROWN */
	/* probe to reader */
	RT_MSG_WELCOME = 65, /* rt_msg_welcome */
	RT_MSG_PORTS,        /* rt_msg_port[] up to the end of the message */
	RT_MSG_SESSIONS,     /* rt_msg_session[] up to the end of the message */
	RT_MSG_OPENED,       /* no body; the memory is in use */
	RT_MSG_STARTED,      /* no body */
	RT_MSG_STOPPED,      /* no body */
	RT_MSG_ERROR,        /* rt_msg_error; the probe closes after it */
	RT_MSG_MONITORING,   /* no body; the first carries the descriptor of the statistics */
	RT_MSG_FILTERED,     /* rt_msg_filtered */
	RT_MSG_LAYOUT,       /* rt_msg_layout; answered by RT_MSG_MEMORY */
	RT_MSG_GROWN,        /* rt_msg_grown */
};

struct rt_msg_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type; /* enum rt_msg_type */
	uint32_t len;  /* bytes of the whole message */
};
static_assert(sizeof(struct rt_msg_header) == 12, "message header");

struct rt_msg_hello {
	struct rt_msg_header h;
	uint32_t pid; /* the reader's, for display only */
	char program[RT_NAME_LEN];
};

struct rt_msg_welcome {
	struct rt_msg_header h;
	uint32_t pid;
	char prefix[RT_NAME_LEN];  /* EAL file-prefix */
	char program[RT_NAME_LEN]; /* the application's short name */
	char dpdk[RT_NAME_LEN];    /* rte_version() */
	char probe[RT_NAME_LEN];   /* ringtap version of the probe */
};

/* The RX time stamps in a port's mbufs. */
enum rt_stamps {
	RT_STAMPS_NONE,
	RT_STAMPS_NIC,  /* the NIC's clock, or a driver's: for RT_TIMESTAMP_NIC */
	RT_STAMPS_TIME, /* CLOCK_REALTIME: always used */
};

#define RT_VHOST_DRIVER "vhost-user" /* the driver of ports that the vhost library has */

struct rt_msg_port {
	char name[RT_NAME_LEN];
	char driver[RT_NAME_LEN];
	uint8_t mac[6];
	uint16_t port_id;
	uint32_t link_mbps; /* 0: unknown */
	uint8_t link_up;
	uint8_t stamps; /* enum rt_stamps */
	uint16_t mtu;
	uint16_t nb_rx_queues; /* earlier versions: 32 bits, of little-endian machines */
	uint16_t linktype;     /* LINKTYPE_…; 0: Ethernet, as of earlier probes */
	uint32_t nb_tx_queues;
};
static_assert(sizeof(struct rt_msg_port) == 2 * RT_NAME_LEN + 24, "as of earlier versions");

struct rt_msg_session {
	uint32_t id;
	uint32_t reader_pid;
	char reader[RT_NAME_LEN];
	uint32_t rings;
	uint32_t taps;
	uint64_t buffer_size; /* bytes, for all rings */
	uint64_t start_ns;
};

/* A classic BPF instruction, the layout of libpcap's struct bpf_insn. */
struct rt_insn {
	uint16_t code;
	uint8_t jt;
	uint8_t jf;
	uint32_t k;
};
static_assert(sizeof(struct rt_insn) == 8, "cBPF instruction");

#define RT_TARGET_RX 1u
#define RT_TARGET_TX 2u
#define RT_QUEUE_ALL UINT32_MAX
#define RT_NO_FILTER UINT32_MAX

/* Which packets of a port; the first target that matches a port decides. */
struct rt_msg_target {
	char port[RT_NAME_LEN]; /* name, or decimal port id; empty: every port, now and later */
	uint32_t queue;         /* RT_QUEUE_ALL or one */
	uint16_t directions;    /* RT_TARGET_RX | RT_TARGET_TX */
	uint16_t linktype;      /* LINKTYPE_… of the ports that it matches; 0: Ethernet */
	uint32_t snaplen;       /* bytes; 1 … 262144 */
	uint32_t insn_first;    /* first instruction of its filter, RT_NO_FILTER: none */
	uint32_t insn_count;
};

enum rt_on_full { RT_ON_FULL_DROP = 0, RT_ON_FULL_WAIT = 1 };
enum rt_timestamp { RT_TIMESTAMP_TSC = 0, RT_TIMESTAMP_NIC = 1 };

/* flags of rt_msg_open */
#define RT_OPEN_GROWS  1u /* the first memory for chunks may have some; RT_MSG_GROW brings more */
#define RT_OPEN_SAMPLE 2u /* rt_msg_sample ends the message */
/* Records have metadata of mbufs on offloads: bits 9 to 11 of epb_flags, and epb_verdict. */
#define RT_OPEN_MBUFS 4u
/* The value of a target's filter is a snaplen of this packet. */
#define RT_OPEN_LENGTHS 8u

/* rt_msg_first ends the message, behind rt_msg_sample. */
#define RT_OPEN_FIRST 16u

#define RT_OPEN_ALL \
	(RT_OPEN_GROWS | RT_OPEN_SAMPLE | RT_OPEN_MBUFS | RT_OPEN_LENGTHS | RT_OPEN_FIRST)

#define RT_SAMPLE_MAX (1u << 24)

/* ids of rt_msg_open: RT_IDS_…, and from RT_IDS_SOURCE_SHIFT on a number that the reader gives to
 * the application, which is in the top bits of its ids. */
#define RT_IDS_ON           1u
#define RT_IDS_INFER        2u /* also those of packets without their flag */
#define RT_IDS_FATES        4u /* with RT_IDS_ON: see struct rt_msg_fates */
#define RT_IDS_EVENTS       8u /* with RT_IDS_FATES: records of fates have ids, and no bytes */
#define RT_IDS_SOURCE_SHIFT 8
#define RT_IDS_SOURCE_BITS  4

struct rt_msg_open {
	struct rt_msg_header h;
	uint16_t on_full;   /* enum rt_on_full; earlier versions: 32 bits */
	uint16_t flags;     /* RT_OPEN_…; earlier probes refuse any as an unknown option */
	uint32_t timestamp; /* enum rt_timestamp */
	uint32_t target_count;
	uint32_t insn_count;
	uint32_t ids;         /* 0: none; only in RT_MSG_OPEN_IDS */
	uint64_t buffer_size; /* bytes, rounded up by the probe; 0: default */
	uint64_t buffer_most; /* bytes; limits the default */
	/* followed by rt_msg_target[target_count], then rt_insn[insn_count], then with
	 * RT_OPEN_SAMPLE rt_msg_sample, then with RT_OPEN_FIRST rt_msg_first */
};

/* Takes one of `every` packets, a power of two from 2 to RT_SAMPLE_MAX, before the filter. Not with
 * RT_IDS_FATES. */
struct rt_msg_sample {
	uint64_t secret[2]; /* keys the choice; the same for all processes of an application */
	uint32_t every;
	uint32_t reserved; /* 0 */
};
static_assert(sizeof(struct rt_msg_sample) == 24, "ends a message");

/* Captures the first bytes or packets of each flow, of those that the filter lets pass. Not with
 * RT_IDS_FATES. */
#define RT_FIRST_MAX      (1u << 31)
#define RT_FIRST_BITS_MIN 8u
#define RT_FIRST_BITS_MAX 14u /* 256 KiB for each thread; for late ones it is the application's */
struct rt_msg_first {
	uint32_t limit;   /* 1 to RT_FIRST_MAX */
	uint8_t packets;  /* 1: the limit is in packets; 0: in bytes on the wire */
	uint8_t inner;    /* 1: flows are those of the packet inside of all tunnels */
	uint8_t bits;     /* a thread remembers 2^bits flows */
	uint8_t reserved; /* 0 */
};
static_assert(sizeof(struct rt_msg_first) == 8, "ends a message");

/* The memory of the session that was requested; the reader makes it. */
#define RT_NODE_UNKNOWN (-1)
struct rt_msg_layout {
	struct rt_msg_header h;
	uint32_t ring_count;  /* 1 to RT_MAX_RINGS */
	uint32_t share_count; /* 1 to ring_count: parts of the buffer */
	uint32_t if_capacity, tap_capacity;
	uint32_t chunk_count, order_count;
	uint64_t chunk_size; /* bytes: power of two, page multiple */
	/* Exact size of each memory. With RT_OPEN_GROWS that of RT_FD_DATA may be less than all
	 * chunks: a multiple of RT_HUGE_PAGE. */
	uint64_t bytes[RT_FD_COUNT];
	uint64_t filled; /* bytes of RT_FD_SEGMENT that the reader populates; the rest are rows of
			  * counters for later threads */
	/* By share: its NUMA node, RT_NODE_UNKNOWN. Share i begins with chunk
	 * i * chunk_count / share_count. */
	int32_t node[RT_MAX_RINGS];
};

/* Follows rt_msg_layout in the same message if fates were requested. Such a session has no records
 * of received and of sent packets: a record is a received packet that was not offered to any TX
 * function, written when a hook notices it. Its interface and queue are those of its reception, its
 * time stamp is that of the notice, instead of an id it has the time of its reception, in ns since
 * the epoch, and its bytes are the first ones of what was received, as many as the snaplen of
 * the targets has, rounded up to 64, RT_FATE_SNAP_MAX at most. Targets have no filters, all taps of
 * both directions are needed, and a full ring drops records (RT_ON_FULL_DROP).
 *
 * With RT_IDS_EVENTS records are for readers that have the packets from another session: no bytes
 * are kept, the id is that of the packet, and there are also records of packets that become unknown
 * and have an id. enum rt_fate_event is in epb_flags. Targets may have filters: all packets count,
 * and those that the filter of their reception refuses have no records. */
struct rt_msg_fates {
	uint32_t bits;   /* as in rt_seg_header */
	uint32_t stride; /* bytes */
	uint64_t bytes; /* bytes of the table and of that of the pools, in RT_FD_SEGMENT besides the
			 * rest
			 */
};

/* Keeps collectors switched on for as long as the connection lasts; see common/stats.h. */
struct rt_msg_monitor {
	struct rt_msg_header h;
	uint32_t collectors;    /* RT_COLLECT_* */
	uint32_t latency_every; /* times one packet in N; 0: every one */
};

/* The filter of all targets from now on. */
struct rt_msg_filter {
	struct rt_msg_header h;
	uint32_t insn_count; /* 0: every packet passes; followed by rt_insn[insn_count] */
};

/* 0: every packet of which a ring's head is moved after this passed the new filter, and only those
 * that it refuses were refused. Else -errno: the filter is refused, the old one stays. */
struct rt_msg_filtered {
	struct rt_msg_header h;
	int32_t code;
	char text[RT_TEXT_LEN];
};

/* 0: the memory's chunks are in use. Else -errno: they are not, and the session goes on without. */
struct rt_msg_grown {
	struct rt_msg_header h;
	int32_t code;
	char text[RT_TEXT_LEN];
};

struct rt_msg_error {
	struct rt_msg_header h;
	int32_t code; /* -errno */
	char text[RT_TEXT_LEN];
};

#endif
