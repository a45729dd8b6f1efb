/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libringtap: find DPDK applications that carry the ringtap probe, attach, and read their
 * packets in time order without copying them.
 *
 * Errors: functions return 0 or a count, or -errno. The library never prints and never aborts.
 * A handle belongs to one thread at a time; different handles may be used in different threads.
 * Structures begin with their size, set by the caller to sizeof, so that they can grow. Those that
 * the library fills: fields beyond the size are not touched; -EINVAL: the size was not set. Options
 * and targets: fields beyond the size are 0; -EINVAL: the size is less than in the first version,
 * or a value is unknown; -E2BIG: a field that this version does not have is not 0.
 */
#ifndef RINGTAP_READER_H
#define RINGTAP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ringtap/apps.h"

/* Inline in C and C++; the library has these functions as symbols, too, for languages that cannot
 * include this. Those that pass the size of a structure of the caller's are inline only. */
#ifndef RINGTAP_INLINE
#define RINGTAP_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define RINGTAP_NAME_LEN    64
#define RINGTAP_SNAPLEN_MAX 262144
#define RINGTAP_NO_INDEX    UINT32_MAX
/* LINKTYPE_… of pcap-linktype(7); ports of DPDK's drivers have no other. */
#define RINGTAP_LINKTYPE_ETHERNET 1
#define RINGTAP_LINKTYPE_RAW      101 /* an IP header; libpcap's DLT_RAW */

/* An array that the library fills. Entries may grow at their end in later versions: entry i lies i
 * strides behind the first, however large a program compiled earlier takes them to be. */
struct ringtap_array {
	void *first;
	size_t stride; /* bytes from one entry to the next */
};

RINGTAP_INLINE const void *ringtap_array_at(const struct ringtap_array *a, size_t i)
{
	return (const char *)a->first + i * a->stride;
}

const char *ringtap_version(void); /* "major.minor.patch", static */

/* ---- Connections: what an application is and has --------------------------------------------- */

struct ringtap_conn;

struct ringtap_app_info {
	size_t size;
	uint32_t pid; /* as the application sees itself */
	char prefix[RINGTAP_NAME_LEN];
	char program[RINGTAP_NAME_LEN];
	char dpdk[RINGTAP_NAME_LEN];  /* DPDK version */
	char probe[RINGTAP_NAME_LEN]; /* ringtap version of the probe */
	uint32_t host_pid; /* in the PID namespace of the caller; 0: not visible from there */
};

/* NULL stands for the defaults. */
struct ringtap_conn_options {
	size_t size;
	int timeout_ms; /* for each answer; 0: 10 s, and 3 s of telemetry; -EINVAL: negative */
	/* 1: the application's telemetry is not asked to wake the probe: -EPROTONOSUPPORT if it
	 * sleeps or is missing. For those who try again and again. */
	int awake_only;
};

/* RX time stamps that a port's packets bring along. */
enum ringtap_stamps {
	RINGTAP_STAMPS_NONE,
	RINGTAP_STAMPS_NIC,  /* for RINGTAP_NIC */
	RINGTAP_STAMPS_TIME, /* the system's clock: used instead of RINGTAP_TSC */
};

struct ringtap_port_info {
	char name[RINGTAP_NAME_LEN];
	char driver[RINGTAP_NAME_LEN];
	uint8_t mac[6];
	uint16_t port_id;
	uint32_t link_mbps; /* 0: unknown */
	uint16_t mtu;
	bool link_up;
	uint8_t stamps; /* enum ringtap_stamps, or a later value */
	uint32_t rx_queues, tx_queues;
	char device[RINGTAP_NAME_LEN]; /* ethdev's name; name is Open vSwitch's where it has one */
	uint16_t linktype; /* LINKTYPE_… of its packets (pcap-linktype(7)), 1: Ethernet */
};

struct ringtap_session_info {
	uint32_t id, reader_pid;
	char reader[RINGTAP_NAME_LEN];
	uint32_t rings, taps;
	uint64_t buffer_size; /* bytes, of all rings */
	uint64_t start_ns;    /* since the epoch; 0: not armed yet */
};

/* Connects to the application whose runtime folder is dir, waking its probe over DPDK telemetry
 * where needed. -ENOENT: no such application; -EAGAIN: it is starting, or accepts no connection;
 * -EPROTONOSUPPORT: it runs without the probe; -EPROTO: an invalid answer; -EPROTOTYPE: another
 * protocol version; -ETIMEDOUT: no answer; -EHOSTDOWN: none, as its process is stopped or frozen;
 * -EUNATCH: its probe was detached; -EACCES; … On error *out is NULL and a sentence for people is
 * in err (up to errlen bytes; NULL: none). */
int ringtap_conn_open(struct ringtap_conn **out, const char *dir,
	const struct ringtap_conn_options *opts, char *err, size_t errlen);
void ringtap_conn_close(struct ringtap_conn *conn);
int ringtap_conn_app(const struct ringtap_conn *conn, struct ringtap_app_info *out);

/* Ends all sessions of the application, and the control thread of its probe, which nothing wakes
 * any more but 'ringtap attach' or the application. The connection ends, too. 0; -ETIMEDOUT;
 * -EPROTO: the probe is older than this function; … err as above. */
int ringtap_conn_detach(struct ringtap_conn *conn, char *err, size_t errlen);

/* The ports of an application and the sessions that capture them. The library allocates it. */
struct ringtap_list {
	size_t port_count, session_count;
	struct ringtap_array ports, sessions;
};

/* The caller frees *out with ringtap_list_free(). 0, -ETIMEDOUT, -ECONNRESET: the application is
 * gone, -EPROTO, -ENOMEM; *out is NULL then. */
int ringtap_conn_list(struct ringtap_conn *conn, struct ringtap_list **out);
void ringtap_list_free(struct ringtap_list *list);

/* Entry i of a list, less than the count. Lives as long as the list. */
RINGTAP_INLINE const struct ringtap_port_info *ringtap_list_port(
	const struct ringtap_list *l, size_t i)
{
	return (const struct ringtap_port_info *)ringtap_array_at(&l->ports, i);
}

RINGTAP_INLINE const struct ringtap_session_info *ringtap_list_session(
	const struct ringtap_list *l, size_t i)
{
	return (const struct ringtap_session_info *)ringtap_array_at(&l->sessions, i);
}

/* Sends a command to DPDK's telemetry of the application whose runtime folder is dir, such as
 * "/ethdev/stats,0", and waits up to timeout_ms (0: 3 s) for the answer. *answer becomes its JSON
 * text, for free(). *pid, if not NULL, becomes the process that answers, in the PID namespace of
 * the caller (0: not visible). answer may be NULL: nothing is sent. -EINVAL: no command for an
 * answer, or a negative timeout; -ENOENT, -ECONNREFUSED: no application, or a secondary process;
 * -EPERM: its socket cannot be trusted; -EBUSY: DPDK serves ten clients; -ETIMEDOUT; -errno. */
int ringtap_telemetry(
	const char *dir, const char *command, int timeout_ms, char **answer, uint32_t *pid);

/* Why a process (host_pid of an application) does not answer: true if it is stopped by a signal or
 * a debugger, or if its control group is frozen; why, of size bytes, then becomes a sentence that
 * says so and how to continue it. False: it runs, or /proc does not show it. */
bool ringtap_process_halted(uint32_t pid, char *why, size_t size);

/* ---- Captures: attach, and take runs of packets ---------------------------------------------- */

/* A classic BPF instruction: layout and meaning of libpcap's struct bpf_insn. */
struct ringtap_insn {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};

enum { RINGTAP_RX = 1, RINGTAP_TX = 2 };

/* Ports and packets to capture. The first target of an application that matches a port decides. */
struct ringtap_target {
	const char *port;    /* name or decimal id; NULL: all ports, also later ones */
	int queue;           /* -1: all */
	unsigned directions; /* RINGTAP_RX, RINGTAP_TX or both */
	uint32_t snaplen;    /* bytes; 0: RINGTAP_SNAPLEN_MAX */
	const struct ringtap_insn *filter; /* NULL: all packets; copied */
	uint32_t filter_len;               /* instructions */
	/* LINKTYPE_… of the packets that the filter and the caller understand: ports of other types
	 * are not of this target. 0: Ethernet. See struct ringtap_port_info. */
	uint16_t linktype;
};

enum ringtap_on_full { RINGTAP_DROP, RINGTAP_WAIT };
enum ringtap_timestamp { RINGTAP_TSC, RINGTAP_NIC };
/* INFERRED: also of packets sent with reset mbuf flags: likely, not certain. */
enum ringtap_ids { RINGTAP_NO_IDS, RINGTAP_IDS, RINGTAP_IDS_INFERRED };

struct ringtap_capture_options {
	size_t size;
	/* Bytes of this process for an application's packets, shared by its polling threads and
	 * rounded up to what these need; 0: 256 MiB, 32 MiB for each thread if that is more, but at
	 * most a quarter of the memory that is available. */
	uint64_t buffer_size;
	enum ringtap_on_full on_full;
	enum ringtap_timestamp timestamp;
	/* As in struct ringtap_conn_options, also for filters (0: 8 s) and the end; rings: 60 s. */
	int timeout_ms;
	enum ringtap_ids ids;
	bool fates;    /* only packets that are not offered, see fates.h */
	bool fate_ids; /* with fates: events, with the ids of another capture, see fates.h */
	/* Takes one of N packets at random, N a power of two, before the filter; with ids those of
	 * one id together. 0, 1: all. Not with fates. -ENOTSUP: older probe. */
	uint32_t sample;
	bool mbufs;   /* records have metadata of mbufs (docs/format.md); as sample */
	bool lengths; /* the value of a filter is a snaplen of this packet; as sample */
	uint32_t first, first_flows; /* the first bytes of each flow, see docs/format.md; 0: all */
	bool first_packets, first_inner; /* packets instead; flows are those inside of tunnels */
};

struct ringtap_capture;

/* NULL stands for the defaults. */
struct ringtap_capture_create_options {
	size_t size;
};

/* A capture of one or several applications, merged. The caller closes *out with
 * ringtap_capture_close(). 0, -EINVAL or -E2BIG: the options; -ENOMEM, -EMFILE, … */
int ringtap_capture_create(
	struct ringtap_capture **out, const struct ringtap_capture_create_options *opts);

/* As ringtap_capture_attach(); size is that of the caller's struct ringtap_target. */
int ringtap_capture_attach_sized(struct ringtap_capture *cap, const char *dir,
	const struct ringtap_target *targets, size_t size, size_t target_count,
	const struct ringtap_capture_options *opts);

/* Attaches to the application whose runtime folder is dir, and makes its rings.
 * opts may be NULL. Errors as ringtap_conn_open(), and -ENODEV: a named port does not exist;
 * -EINVAL: filter refused, or unknown or no directions; -E2BIG: no targets or more than 64, or
 * filters too long; of ids, fates: -ENOTSUP: older probe; -ENOENT, -ENOSPC: no room in mbufs; … */
static inline int ringtap_capture_attach(struct ringtap_capture *cap, const char *dir,
	const struct ringtap_target *targets, size_t target_count,
	const struct ringtap_capture_options *opts)
{
	return ringtap_capture_attach_sized(
		cap, dir, targets, sizeof(*targets), target_count, opts);
}

/* Lets packets flow, as a first ringtap_capture_next() does. 0 or -errno; -EBUSY: too many do. */
int ringtap_capture_start(struct ringtap_capture *cap);

/* Last error, a sentence without a full stop. Lives until the next call. */
const char *ringtap_capture_error(const struct ringtap_capture *cap);

/* Packets of one thread, in place, for ringtap_packet_next() and ringtap_run_pcapng(). */
struct ringtap_run {
	size_t size;                /* bytes of this structure; set by ringtap_capture_next() */
	uint64_t packets;           /* at least 1 */
	uint64_t bytes;             /* length as pcapng */
	uint64_t first_ns, last_ns; /* since the epoch */
	uint32_t app;               /* index in order of attaching */
	bool stale; /* packets may have passed an earlier filter, see ringtap_capture_filter() */
	/* The library's own: where the records lie, and in which form. */
	uint32_t form;
	const void *records;
	const uint32_t *interfaces; /* file-wide id of each of the application's; NULL: the same */
	uint32_t interface_count;
	uint32_t ring; /* index for ringtap_capture_ring(), which has the thread */
};

/* As ringtap_capture_next(); size is that of the caller's struct ringtap_run. */
int ringtap_capture_next_sized(struct ringtap_capture *cap, struct ringtap_run *runs, size_t size,
	unsigned max, int timeout_ms);

/* Hands out the next runs, in non-decreasing time order, at most max. They stay valid until
 * ringtap_capture_release(). Waits up to timeout_ms (-1: no limit) for packets.
 * Returns the number of runs; 0: time is up, or fd wake-up by ringtap_capture_break();
 * -EPIPE: all applications are gone or stopped and everything has been handed out (the end);
 * -EBADMSG: a ring is corrupt: ringtap_capture_error() says where, what came before was good. */
static inline int ringtap_capture_next(
	struct ringtap_capture *cap, struct ringtap_run *runs, unsigned max, int timeout_ms)
{
	return ringtap_capture_next_sized(cap, runs, sizeof(*runs), max, timeout_ms);
}

/* Gives the space of all runs handed out back to the applications. */
void ringtap_capture_release(struct ringtap_capture *cap);

/* Cuts the first packets off a run: at most `packets` of them, and at most `bytes` bytes as pcapng.
 * They become *part, the others stay in *rest. Returns part->packets, and 0 too where the records
 * have become invalid, or the bytes end before the packets: the application can write to them. */
uint64_t ringtap_run_take(
	struct ringtap_run *rest, uint64_t packets, uint64_t bytes, struct ringtap_run *part);

/* The packets of a run as pcapng Enhanced Packet Blocks, run->bytes bytes, with file-wide interface
 * ids: in place where they lie in the ring in this form, else checked and written to buf, of size
 * bytes. NULL: they are not in place, and buf is NULL or size is less than run->bytes; or, with
 * room enough, the application has overwritten them: their lengths, their number or an interface
 * are wrong, and what is in buf is undefined. Valid until ringtap_capture_release(). Blocks in
 * place are not checked again: the application can write to them at any time. */
const void *ringtap_run_pcapng(const struct ringtap_run *run, void *buf, size_t size);

/* ---- Retention: packets stay in the buffer until their space is needed ----------------------
 *
 * A flight recorder: ringtap_capture_keep() instead of ringtap_capture_next() lets packets lie
 * where the application has put them, without reading them, and gives back the oldest when the
 * buffer fills up. What happened before an event is then read from a window. */

/* Keeps the packets of a capture, in a thread of its own or between other work: up to timeout_ms
 * (-1: no limit), but never pausing for longer than it takes the applications to fill a sixteenth
 * of their buffers. Starts the capture if that was not done before. A capture that has once been
 * kept cannot be read by ringtap_capture_next() any more, nor be attached to another application.
 * 0: time is up, or woken by ringtap_capture_break(); -EPIPE: all applications are gone or stopped:
 * what they have left is kept until the capture is closed; -EBADMSG as ringtap_capture_next();
 * -EINVAL: a window; -ENOMEM. */
int ringtap_capture_keep(struct ringtap_capture *cap, int timeout_ms);

/* Gives back packets older than ns, too, in whole chunks (2 MiB, or less of a small buffer); not
 * those that a window holds. 0: no limit, the default. Any thread may call it at any time. */
void ringtap_capture_keep_for(struct ringtap_capture *cap, uint64_t ns);

struct ringtap_kept {
	size_t size;
	uint64_t since_ns; /* since the epoch: every packet captured from then on is kept; 0: since
			    * the capture began. Of a window: was kept when it was made. */
	uint64_t bytes;    /* taken by packets, in all buffers */
	uint64_t buffer_size; /* bytes of all buffers */
	uint64_t newest_ns;   /* since the epoch: time of the newest packet; 0: there is none */
};

/* The packets that are kept. May be called in another thread than ringtap_capture_keep(). -EINVAL:
 * nothing is kept, or out->size was not set. */
int ringtap_capture_kept(struct ringtap_capture *cap, struct ringtap_kept *out);

/* Makes *out a capture of the packets of cap whose time is from_ns … to_ns (since the epoch, both
 * included), which may lie ahead: those that are still kept, and those to come. Until it has
 * released them, they are not given back to the applications. It is read by ringtap_capture_next()
 * until -EPIPE and closed by ringtap_capture_close(), before cap is, and may be used in another
 * thread. Interfaces and their ids, taps and counters are those of cap. May be called in another
 * thread than ringtap_capture_keep(). -EINVAL: cap keeps nothing; -ENOMEM, -EMFILE. */
int ringtap_capture_window(struct ringtap_capture *cap, uint64_t from_ns, uint64_t to_ns,
	struct ringtap_capture **out);

/* ---- Packets: read the packets of a run ------------------------------------------------------ */

struct ringtap_packet {
	const uint8_t *data; /* as its interface's linktype says, until ringtap_capture_release() */
	uint32_t caplen;     /* bytes at data */
	uint32_t length;     /* bytes on the wire; at least caplen */
	uint64_t ns;         /* since the epoch */
	uint32_t interface;  /* file-wide id, see ringtap_capture_interface() */
	/* Only with RINGTAP_FIELDS_ALL. */
	uint32_t queue;    /* RINGTAP_NO_INDEX: unknown */
	uint32_t hash;     /* RSS hash of the NIC, if has_hash */
	uint8_t direction; /* RINGTAP_RX, RINGTAP_TX; 0: unknown */
	bool has_hash;
	uint8_t fate, reason; /* enum ringtap_fate, ringtap_capture_reason(): fates.h */
	uint64_t dropcount;   /* packets lost before it, of its thread, port, queue and direction */
	uint64_t id;          /* the packet, its clones and copies have it when sent; 0: none */
};

enum ringtap_fields { RINGTAP_FIELDS_BASIC, RINGTAP_FIELDS_ALL };

/* An iterator over the packets of a run. It reads ahead, a batch at a time. */
struct ringtap_packets {
	/* The library's own. */
	const char *next, *end;
	size_t stride;
	uint64_t left; /* not read yet */
};

/* The caller frees *out with ringtap_packets_free(). 0 or -ENOMEM. */
int ringtap_packets_create(struct ringtap_packets **out);
void ringtap_packets_free(struct ringtap_packets *it);

/* Goes to the first packet of a run, which is copied: *run itself may go. */
void ringtap_packets_start(struct ringtap_packets *it, const struct ringtap_run *run);

/* Chooses the fields of the packets from the next one on. RINGTAP_FIELDS_BASIC, the default, saves
 * a few nanoseconds a packet. */
void ringtap_packets_fields(struct ringtap_packets *it, enum ringtap_fields fields);

/* 0, or -EBADMSG: ringtap_packet_next() ended early, or found fewer or more packets than
 * run->packets, as the application has overwritten records. */
int ringtap_packets_error(const struct ringtap_packets *it);

/* For ringtap_packet_next(). False: there are no more. */
bool ringtap_packets_fill(struct ringtap_packets *it);

/* The next packet of the run, NULL at its end: never more than run->packets of them. It lives until
 * the next call; its data live until ringtap_capture_release(). Its fields are consistent whatever
 * the application does; the bytes of its data may change. */
RINGTAP_INLINE const struct ringtap_packet *ringtap_packet_next(struct ringtap_packets *it)
{
	const struct ringtap_packet *p;

	if (it->next == it->end && !ringtap_packets_fill(it))
		return NULL;
	p = (const struct ringtap_packet *)it->next;
	it->next += it->stride;
	return p;
}

/* Does ringtap_packet_next() have packets left? It may still find that they are invalid. */
RINGTAP_INLINE bool ringtap_packets_more(const struct ringtap_packets *it)
{
	return it->next != it->end || it->left;
}

/* ---- Control: filter, wait and end a capture ------------------------------------------------- */

/* Gives all that is captured another filter, NULL for none, before or while packets flow. What an
 * application's threads capture from its answer on has passed the new filter, and only that: runs
 * handed out later that are not `stale`. Packets of stale runs, and of those that have been handed
 * out already, may have passed the old one only: the caller checks them. Applications that have
 * ended keep what they have, all of it stale.
 * -EINVAL, -ENOTSUP: an application refuses it. Others have it by then: set one that all take.
 * -ETIMEDOUT: one has not answered, it may be paused. Its capture goes on; which filter it has is
 * open while ringtap_capture_filtering(), which reading ends: set one again then. */
int ringtap_capture_filter(
	struct ringtap_capture *cap, const struct ringtap_insn *filter, uint32_t filter_len);
bool ringtap_capture_filtering(const struct ringtap_capture *cap);

/* 0, or -EINVAL: no application will take it. It has to end, so it must not jump back, and must
 * keep to the packet, its memory and what is known of a packet: `inbound`, but not `ifindex`. */
int ringtap_filter_check(const struct ringtap_insn *filter, uint32_t filter_len);

/* Makes a waiting ringtap_capture_next() return 0 early. Async-signal- and thread-safe. */
void ringtap_capture_break(struct ringtap_capture *cap);

/* A descriptor for select(), poll() and epoll: readable while there is something to hand out, at
 * the end, and when ports have come or gone. Its first call, when all applications are attached and
 * packets flow, starts a small thread that watches the rings while nobody reads. Each reading must
 * end with ringtap_capture_rearm(). more: the caller has not used up what it was handed. It lives
 * as long as the capture; nobody else may read or close it. -EMFILE. A child process may go on
 * reading after a fork(); parent and child may not both do it. */
int ringtap_capture_fd(struct ringtap_capture *cap, bool more);
void ringtap_capture_rearm(struct ringtap_capture *cap, bool more);

/* Asks for the end of the capture and returns at once. Go on with ringtap_capture_next(): it hands
 * out what is still captured and in the rings, up to -EPIPE; then counters are final. An
 * application that does not answer makes that -ETIMEDOUT. (To wait here would fill the rings.) */
int ringtap_capture_stop(struct ringtap_capture *cap);

/* Closes the connections, which ends the sessions in the applications. Runs that have been handed
 * out stay readable until ringtap_capture_close(), and counters keep their values; nothing more is
 * handed out (-EPIPE). In a child process after fork() it closes the child's copies only: the
 * parent's sessions go on. If the parent is killed, they last as long as another process has a
 * copy, so a child that keeps runs, or does not close the capture, calls it at once. */
void ringtap_capture_detach(struct ringtap_capture *cap);

/* Detaches and frees. Runs become invalid. */
void ringtap_capture_close(struct ringtap_capture *cap);

/* ---- Counters: what is captured, and what is lost -------------------------------------------- */

/* Interfaces in the order of their file-wide ids; grows when ports appear. An interface is known
 * here before a run with its packets is handed out. */
struct ringtap_interface {
	size_t size;
	uint32_t app;    /* index in order of attaching */
	uint32_t target; /* that chose it; RINGTAP_NO_INDEX: the application has overwritten it */
	char app_name[RINGTAP_NAME_LEN];
	char name[RINGTAP_NAME_LEN];
	char driver[RINGTAP_NAME_LEN];
	uint8_t mac[6];
	uint16_t port_id;
	uint32_t link_mbps, snaplen; /* link_mbps: 0: unknown */
	bool gone;                   /* the port has vanished, or its application has */
	/* The NIC's counters since the capture began, as they were at nic_ns. */
	uint64_t nic_ipackets, nic_opackets, nic_imissed, nic_ierrors, nic_nombuf, nic_oerrors;
	char device[RINGTAP_NAME_LEN]; /* ethdev's name; name is Open vSwitch's where it has one */
	uint64_t tsc_hz;               /* ticks a second of its TSC, as the probe measures it */
	uint16_t linktype; /* LINKTYPE_… of its packets (pcap-linktype(7)), 1: Ethernet */
	uint32_t sample;   /* one of N packets is taken: this N; 1: all */
	uint64_t nic_ns;   /* since the epoch; before a port is stopped; 0: none, or an old probe */
};
unsigned ringtap_capture_interface_count(const struct ringtap_capture *cap);
int ringtap_capture_interface(
	const struct ringtap_capture *cap, unsigned i, struct ringtap_interface *out);

enum ringtap_loss {
	RINGTAP_LOST_FULL,       /* ring full: the reader was too slow */
	RINGTAP_LOST_NO_RING,    /* its thread has no ring: there are more than 256, or many began
				  * within 50 ms; or it was interrupted while it used its ring */
	RINGTAP_LOST_WAIT,       /* on-full=wait: the bounded wait ran out */
	RINGTAP_LOST_BAD,        /* broken mbuf */
	RINGTAP_LOST_UNREADABLE, /* in memory that the CPU cannot read (a GPU's) */
};

#define RINGTAP_LOST_MAX 16 /* room for the reasons of later versions; sums add up all of it */

/* A reason of loss as a word ("ring_full"), as `record` prints it; NULL: no more. Static. */
const char *ringtap_loss_name(unsigned reason);

/* Packets: seen == captured + filtered + not_sampled + cut + sum(lost), exactly once stopped,
 * within a burst before. It lies within other structures and keeps its size; add up all of lost. */
struct ringtap_counts {
	uint64_t seen, captured, filtered;
	uint64_t bytes;                  /* bytes of captured packets on the wire */
	uint64_t lost[RINGTAP_LOST_MAX]; /* by enum ringtap_loss */
	uint64_t not_sampled;            /* left out by the sample, before the filter */
	uint64_t cut, evicted;           /* beyond the first of its flow; flows forgotten */
	uint64_t reserved[1];
};

struct ringtap_tap {
	size_t size;
	uint32_t interface; /* file-wide id */
	uint16_t queue;
	uint16_t direction; /* RINGTAP_RX or RINGTAP_TX */
	struct ringtap_counts counts;
};
unsigned ringtap_capture_tap_count(const struct ringtap_capture *cap);
int ringtap_capture_tap(const struct ringtap_capture *cap, unsigned i, struct ringtap_tap *out);

struct ringtap_ring {
	size_t size;
	uint32_t app;
	uint32_t lcore;       /* UINT32_MAX: unknown or unused */
	uint64_t buffer_size; /* bytes, shared with the application's other rings */
	uint64_t used;        /* bytes not yet released */
	uint64_t written;     /* bytes since the beginning */
	/* From a look of ringtap_capture_next() to the next, where the application lost most
	 * packets by its full buffer: bytes that the ring wrote, and its packets among those. */
	uint64_t pause_written, pause_lost;
	uint32_t tid; /* thread that used the ring last, in its PID namespace; 0: unknown */
};
unsigned ringtap_capture_ring_count(const struct ringtap_capture *cap);
int ringtap_capture_ring(const struct ringtap_capture *cap, unsigned i, struct ringtap_ring *out);

struct ringtap_stats {
	size_t size;
	struct ringtap_counts total;
	uint64_t delivered;      /* packets handed out by ringtap_capture_next() */
	uint64_t reordered;      /* packets handed out later than their time */
	uint64_t apps_dead;      /* applications that went away by themselves */
	uint64_t queues_refused; /* not captured: more queues than the segment has room for */
	/* Figures of the application whose buffer was fullest when the reader looked. */
	uint64_t buffer_size;      /* bytes */
	uint64_t buffer_most_used; /* bytes */
	uint64_t longest_pause_ns; /* between two looks at the rings */
	/* Packets lost by a full buffer while it grew, and the time of that: a capture begins with
	 * 16 MiB, and has the rest when it is populated, tenths of a second for each 256 MiB. */
	uint64_t growing_lost, growing_ns;
};
int ringtap_capture_stats(const struct ringtap_capture *cap, struct ringtap_stats *out);

/* Why the buffer of an application has less than was requested, and stays so; "": none has, or they
 * still grow. Valid until the next call. */
const char *ringtap_capture_buffer_error(const struct ringtap_capture *cap);

/* ---- Pcapng: write the blocks around the packets of a file -----------------------------------
 *
 * A file is one section block, a block for each interface of the capture in the order of their ids,
 * and packets (ringtap_run_pcapng()). An interface that appears later has its block before its
 * first packet: after each ringtap_capture_next(), write those that the file lacks. Statistics of
 * an interface may follow anywhere behind its block, and end the file.
 *
 * These functions write one block to buf, of size bytes, and return its length. If that is more
 * than size, what is in buf is undefined: call again with more room. buf may be NULL if size is 0,
 * and opts may be NULL. -EMSGSIZE: a text is longer than 65534 bytes; -EINVAL, -E2BIG: opts. */

/* Texts that are NULL have the defaults; those that are empty are left out. */
struct ringtap_pcapng_section_options {
	size_t size;
	const char *application; /* that writes the file; by default libringtap and its version */
	const char *comment;
	const char *const *comments; /* further ones, NULL behind the last; NULL: none */
};

/* The section block, with which a file begins. */
int ringtap_pcapng_section(
	void *buf, size_t size, const struct ringtap_pcapng_section_options *opts);

struct ringtap_pcapng_interface_options {
	size_t size;
	const char *name; /* by default the port's, "APP:PORT" if there are several applications */
	const char *description; /* by default its number, its application, ethdev's name */
	const char *filter;      /* the libpcap expression that its packets have passed */
	const char *comment;
	/* Snapshot length to write; 0: the interface's own. libpcap reads files only whose
	 * interfaces have one: write the largest of all. A comment names the interface's own. */
	uint32_t snaplen;
};

/* The block of interface i of a capture. -ENOENT: there is none. */
int ringtap_pcapng_interface(const struct ringtap_capture *cap, unsigned i, void *buf, size_t size,
	const struct ringtap_pcapng_interface_options *opts);

struct ringtap_pcapng_statistics_options {
	size_t size;
	uint64_t start_ns; /* since the epoch: when the capture began; 0: left out */
	uint64_t end_ns;   /* the same, when it ended; 0: it goes on */
	bool has_delivered;
	uint64_t delivered;  /* packets of the interface in the file, if has_delivered */
	const char *comment; /* another one than that with the NIC's counters; cut at 200 bytes */
	const char *clock;   /* a further one: the state of the clock */
};

/* Statistics of interface i: packets seen, filtered, not sampled, lost here and by the NIC. They
 * are exact once ringtap_capture_next() has returned -EPIPE. -ENOENT: there is no interface i. */
int ringtap_pcapng_statistics(const struct ringtap_capture *cap, unsigned i, void *buf, size_t size,
	const struct ringtap_pcapng_statistics_options *opts);

#ifdef __cplusplus
}
#endif

#endif
