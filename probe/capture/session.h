/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture sessions: the control thread builds them, the hooks use them. */
#ifndef RINGTAP_PROBE_CAPTURE_SESSION_H
#define RINGTAP_PROBE_CAPTURE_SESSION_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_config.h>

#include "common/clock.h"
#include "common/proto.h"
#include "common/segment.h"
#include "probe/dpdk/ports.h"
#include "chunks.h"
#include "common/ring.h"
#include "probe/memory/shm.h"
#include "probe/hook/tap.h"
#include "probe/hook/thread.h"
#include "probe/now_ms.h"

static_assert(RT_MAX_RINGS == RT_MAX_THREADS, "a ring for each slot");

/* Rows of counters that are populated beyond the threads that are known: as many may begin between
 * two ticks without a loss. The reader populates more at the beginning. */
#define RT_ROWS_AHEAD 16u

struct rt_fates;
struct rt_filter;
struct rt_first;
struct rt_sampler;

enum rt_session_state {
	RT_SESSION_OBSERVING, /* hooks are installed, and show which threads poll */
	RT_SESSION_LAID_OUT,  /* the reader makes the memory */
	RT_SESSION_READY,     /* the rings exist, nothing is linked */
	RT_SESSION_ARMED,
	RT_SESSION_CLOSING,  /* fates: what was received until now is followed to the last walk */
	RT_SESSION_STOPPING, /* unlinked, waiting for the grace period */
	RT_SESSION_STOPPED,  /* no producer left; memory still there */
};

struct rt_session_if {
	struct rt_msg_port port;
	uint32_t generation; /* the port id's, see ports.h */
	uint32_t target;     /* index */
	uint32_t queues[2];  /* by direction: queues below have their tap */
	uint32_t unhooked;   /* TX queues that could not get a tap or a hook */
	bool gone;
	bool returned;                  /* it was removed and came back: its taps may exist */
	bool counted;                   /* last is valid */
	struct rt_nic_clock *nic_clock; /* NULL: time stamps are the TSC's */
	uint64_t last[RT_NIC_COUNTERS]; /* the driver's */
	uint64_t nic[RT_NIC_COUNTERS];  /* since the session began */
};

/* Rings that a thread uses, or has used. */
#define RT_EACH_RING(s, i)                                                            \
	for (uint32_t i = rt_thread_set_next(&(s)->chunks.used, 0); i < RT_MAX_RINGS; \
		i = rt_thread_set_next(&(s)->chunks.used, i + 1))

struct rt_session {
	/* Read in hooks. */
	uint32_t flows; /* all taps that there were have been linked: packets count from here on */
	struct rt_ring *rings;      /* RT_MAX_RINGS, by slot of its thread; NULL: no memory yet */
	uint32_t rows;              /* rings below have counters that are populated; atomic */
	uint32_t stopping;          /* a thread that waits for room must leave */
	struct rt_fates *fates;     /* NULL: records of packets instead */
	struct rt_sampler *sampler; /* NULL: takes all packets */
	struct rt_first *first;     /* NULL: flows have no limit */

	/* Control thread only. */
	enum rt_session_state state;
	uint32_t id;
	uint32_t on_full, timestamp, ids; /* as in struct rt_msg_open */
	uint32_t target_count;
	uint64_t buffer_size, buffer_most; /* as requested */
	uint32_t flags;                    /* RT_OPEN_… */
	struct rt_msg_target *targets;
	struct rt_filter **filters; /* by target, equal ones once; NULL entries: none */
	struct rt_filter *
		*old_filters; /* replaced, perhaps still in use; NULL: no change under way */
	struct rt_grace filter_grace;
	uint32_t if_count, if_room, tap_count, tap_capacity, taps_refused;
	struct rt_session_if *ifs;    /* if_room */
	struct rt_tap **taps;         /* tap_capacity */
	struct rt_seg_count *orphans; /* the row of threads without a ring */
	struct rt_chunks chunks;
	uint32_t share_count; /* threads that will probably poll, and some */
	uint32_t least;       /* threads that may poll: one for each queue, and some */
	int32_t node[RT_MAX_RINGS];
	struct rt_shm shm;
	struct rt_grace grace;
	uint64_t opened_ms; /* rt_now_ms() */
	uint64_t start_ns;
	uint32_t reader_pid;
	char reader[RT_NAME_LEN];
	uint32_t refused[RT_MAX_PORTS]; /* generation + 1 of ports that found no entry */
	bool abandoned; /* its connection is gone: free it as soon as it has stopped */
	struct rt_session *next;
};

/* All sessions; control lock held. */
extern struct rt_session *rt_sessions;

/* Announces the thread's ring to the reader. In a hook, once per ring, before the time of the
 * burst is taken. False: its counters are not there yet, as many threads have begun at once. */
bool rt_session_begin_ring(struct rt_session *s, struct rt_ring *r, const struct rt_thread *t);

/* For all functions that follow the control lock is held. */

/* A reader's request, checked; see request.h. */
struct rt_request;

/* Makes a session and installs its hooks; takes over req->filters. On error a sentence is in err
 * (RT_TEXT_LEN bytes), and req is unchanged. */
int rt_session_open(struct rt_session **out, struct rt_request *req, char *err);

/* Only the merge of ports that are stamped (rt_port_stamped()) needs to know which threads poll
 * them. True when it is known, or the time to find it out is over. */
bool rt_session_observed(const struct rt_session *s, uint64_t now_ms);

/* Lays out the memory: how large, and near which CPUs. The hooks stay installed, idle, until the
 * connection ends. *fates: all 0 if the session has none. */
void rt_session_lay_out(
	struct rt_session *s, struct rt_msg_layout *out, struct rt_msg_fates *fates);

/* Attaches the memory that the reader has made; the caller closes fds. 0 or -errno, then a
 * sentence is in err (RT_TEXT_LEN bytes) and the session can only be stopped. */
int rt_session_ready(struct rt_session *s, const int fds[RT_FD_COUNT],
	const struct rt_clock_line *clock, char *err);

/* Adds a memory to the buffer; the caller closes fd. 0, or -errno with a sentence in err: the
 * session goes on with what it has. */
int rt_session_grow(struct rt_session *s, int fd, char *err);

/* Starts the flow of packets. */
void rt_session_arm(struct rt_session *s, const struct rt_clock_line *clock);

/* Writes the tables into the segment and links all taps; part of arming. */
void rt_session_publish(struct rt_session *s);

void rt_session_free_filters(struct rt_filter **filters, uint32_t count);

/* Makes a request for other filters: a copy of the session's targets, all with this program, which
 * is taken over; count 0: none. -EBUSY: the last change is not over; -EINVAL: the session has
 * fates; -ENOMEM; then a sentence is in err. The caller frees *req with rt_request_free(), also
 * after an error. */
int rt_session_filter_request(struct rt_session *s, struct rt_request *req, struct rt_insn *insns,
	uint32_t count, char *err);
/* Takes over req->filters; *req is NULL then. Threads may use the old ones until
 * rt_session_filter_settled(), which frees them. */
void rt_session_set_filter(struct rt_session *s, struct rt_request *req);
/* True, once: no thread uses the old filter any more. False: not yet, or no change is under way. */
bool rt_session_filter_settled(struct rt_session *s);

/* Follows ports and queues that were added, removed or changed. */
void rt_session_rescan(struct rt_session *s);

/* Refreshes the NIC's counters, from a reading at most age_ms old, and those of threads without
 * a slot. */
void rt_session_refresh(struct rt_session *s, uint32_t age_ms);

/* Slots of threads that may be needed at once: of those that have polled, of all lcores, also those
 * that registered with EAL since, and of one thread for each captured queue. */
uint32_t rt_session_threads(const struct rt_session *s);

/* Populates rows of counters ahead of the threads that come. */
void rt_session_supply_rows(struct rt_session *s);

/* Bytes that each ring may keep now, for the reader. */
void rt_session_publish_shares(const struct rt_session *s);

/* Work of an armed session at every tick. */
void rt_session_tick(struct rt_session *s, uint64_t now_ms);

/* False: the reader has written invalid values into its tails. */
bool rt_session_sane(const struct rt_session *s);

/* Unlinks everything and starts the grace period. With fates, unless it is abandoned, the session
 * closes before. Again while it does: for one that was abandoned meanwhile. */
void rt_session_stop(struct rt_session *s);
/* Unlinks everything: the last step of a stop. */
void rt_session_cut(struct rt_session *s);
/* Goes on with the stop; each call is short. True: no producer is left; counters are final. */
bool rt_session_stopped(struct rt_session *s);
/* Its taps that receive packets: not those of ports that are gone. */
uint32_t rt_session_linked(const struct rt_session *s);

/* Only once stopped. */
void rt_session_free(struct rt_session *s);

#endif
