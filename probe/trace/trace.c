/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events for DPDK's tracing and for a loaded tracer, and those USDT events that are not emitted at
 * every call of a hook. rte_trace does not count events that it has no room for: the probe does,
 * per thread.
 */
#include <string.h>

#include <rte_lcore.h>
#include <rte_trace.h>

#include "common/sdt.h"
#include "probe/hook/thread.h"
#include "probe/dpdk/ports.h"
#include "trace.h"
#include "points.h"
#include "tracer.h"

/* Events of one thread. DPDK fills the buffer from its start and then either takes no more or
 * starts again; the part up to the last event is saved, so a single wrap loses everything before
 * it. */
struct tally {
	struct rt_trace_count count[RT_TRACE_EVENTS];
	uint64_t in_buffer[RT_TRACE_EVENTS]; /* emitted since its beginning */
	uint64_t earlier[RT_TRACE_EVENTS];   /* those before the mark */
	uint32_t mark;
	uint32_t offset;     /* in the buffer, after the last event of ringtap */
	uint32_t generation; /* generation of the thread's slot */
} __attribute__((aligned(128)));

const char *const rt_trace_names[RT_TRACE_EVENTS] = {
#define X(event, parameters) #event,
	RT_TRACER_EVENTS(X)
#undef X
};

static rte_trace_point_t *const points[RT_TRACE_EVENTS] = {
#define X(event, parameters) &__rt_point_##event,
	RT_TRACER_EVENTS(X)
#undef X
};

static struct tally tallies[RT_MAX_THREADS];
static struct rt_trace_count others[RT_TRACE_EVENTS]; /* threads without a slot; atomic */
static const struct rt_tracer *tracer;
static uint32_t last_mark;
static bool saving;
/* initial-exec: a hook must not allocate its thread's copy. */
static __thread bool control_thread __attribute__((tls_model("initial-exec")));
static __thread bool no_memory __attribute__((tls_model("initial-exec")));

void rt_trace_set_tracer(const struct rt_tracer *t)
{
	rt_store_release(&tracer, t); /* pairs with the acquire in rt_trace_listened() */
}

static bool is_on(const rte_trace_point_t *point)
{
	return rt_load(point) & __RTE_TRACE_FIELD_ENABLE_MASK;
}

unsigned rt_trace_points_on(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < RT_TRACE_EVENTS; i++)
		n += is_on(points[i]);
	return n;
}

bool rt_trace_listened(void)
{
	const struct rt_tracer *t = rt_load_acquire(&tracer);

	return rt_trace_points_on() || (t && t->enabled());
}

/* Threads go on counting: what is part of another count is read before it. The acquires pair with
 * the releases in wrapped() and count(). */
static void add_count(struct rt_trace_count *sum, const struct rt_trace_count *c)
{
	sum->lost_earlier += rt_load_acquire(&c->lost_earlier);
	sum->lost += rt_load_acquire(&c->lost);
	sum->emitted += rt_load(&c->emitted);
}

void rt_trace_counts(struct rt_trace_count out[RT_TRACE_EVENTS])
{
	memset(out, 0, RT_TRACE_EVENTS * sizeof(*out));
	for (unsigned e = 0; e < RT_TRACE_EVENTS; e++) {
		add_count(&out[e], &others[e]);
		for (unsigned i = 0; i < rt_threads_top(); i++)
			add_count(&out[e], &tallies[i].count[e]);
	}
}

void rt_trace_mark(void)
{
	rt_fetch_add(&last_mark, 1);
}

void rt_trace_control_thread(void)
{
	control_thread = true;
}

bool rt_trace_holds_buffer(void)
{
	return RTE_PER_LCORE(trace_mem);
}

void rt_trace_saving(bool on)
{
	rt_store_release(&saving, on);
}

/* DPDK 22.11 never frees the buffer of a thread without an lcore id; a thread that has given its
 * id back still points to a buffer that is freed. The control thread has no id either, and
 * stays: control.c. rte_eal_cleanup() also frees its buffer without notice, but ports are gone
 * by then. */
static bool may_have_buffer(void)
{
	return rte_lcore_id() != LCORE_ID_ANY || (control_thread && rt_port_next(0) < RT_MAX_PORTS);
}

/* In the calling thread's buffer; 0: it has none. */
static uint32_t buffer_offset(void)
{
	const struct __rte_trace_header *h = RTE_PER_LCORE(trace_mem);

	return h && may_have_buffer() ? h->offset : 0;
}

/* Makes DPDK allocate a buffer if necessary, as DPDK would do anyway: once per thread. */
static bool ready_buffer(void)
{
	if (!may_have_buffer())
		return false;
	if (rt_likely(rt_trace_holds_buffer()))
		return true;
	if (no_memory || rt_load_acquire(&saving))
		return false;
	__rte_trace_mem_per_thread_alloc();
	no_memory = !rt_trace_holds_buffer() && rte_trace_is_enabled();
	return rt_trace_holds_buffer();
}

/* Everything that was in the buffer is overwritten. The releases: add_count(). */
static void wrapped(struct tally *t)
{
	for (unsigned e = 0; e < RT_TRACE_EVENTS; e++) {
		rt_store_release(&t->count[e].lost, t->count[e].lost + t->in_buffer[e]);
		rt_store_release(
			&t->count[e].lost_earlier, t->count[e].lost_earlier + t->earlier[e]);
		t->in_buffer[e] = 0;
		t->earlier[e] = 0;
	}
}

static void count(enum rt_trace_event event, uint32_t before)
{
	const struct rt_thread *self = rt_thread_self;
	uint32_t after = buffer_offset();
	struct tally *t;

	if (!self) {
		rt_fetch_add(&others[event].emitted, 1);
		rt_fetch_add_release(&others[event].lost, before == after);
		return;
	}
	t = &tallies[self->index];
	if (t->generation != self->generation) { /* with a buffer of its own */
		t->generation = self->generation;
		t->offset = 0;
		memset(t->in_buffer, 0, sizeof(t->in_buffer));
		memset(t->earlier, 0, sizeof(t->earlier));
	}
	if (t->mark != rt_load(&last_mark)) {
		t->mark = rt_load(&last_mark);
		memcpy(t->earlier, t->in_buffer, sizeof(t->earlier));
	}
	rt_store(&t->count[event].emitted, t->count[event].emitted + 1);
	if (before == after) {
		rt_store_release(&t->count[event].lost, t->count[event].lost + 1);
		return;
	}
	if (after < before || before < t->offset) /* the latter by events of others */
		wrapped(t);
	t->in_buffer[event]++;
	t->offset = after;
}

/* The point checks again whether it is on; an event that was switched off in between is lost. */
#define EMIT(event, ...)                                                       \
	do {                                                                   \
		const struct rt_tracer *tracer_now = rt_load_acquire(&tracer); \
                                                                               \
		if (is_on(&__rt_point_##event)) {                              \
			uint32_t before = buffer_offset();                     \
                                                                               \
			if (rt_likely(ready_buffer()))                         \
				rt_point_##event(__VA_ARGS__);                 \
			count(RT_TRACE_##event, before);                       \
		}                                                              \
		if (tracer_now)                                                \
			tracer_now->event(__VA_ARGS__);                        \
	} while (0)

void rt_trace_burst(
	enum rt_direction dir, uint16_t port, uint16_t queue, uint16_t nb_pkts, uint16_t n)
{
	if (dir == RT_DIR_TX)
		EMIT(tx_burst, port, queue, nb_pkts, n);
	else if (n)
		EMIT(rx_burst, port, queue, nb_pkts, n);
	else
		EMIT(empty_poll, port, queue, nb_pkts);
}

void rt_trace_ring_full(uint32_t session, uint16_t port, uint16_t queue, uint32_t packets)
{
	RT_USDT(ring_full, session, port, queue, packets);
	EMIT(ring_full, session, port, queue, packets);
}

void rt_trace_drop(uint16_t port, uint16_t queue, uint64_t packets, uint32_t reason)
{
	RT_USDT(drop, port, queue, packets, reason);
	EMIT(drop, port, queue, packets, reason);
}

void rt_trace_tx_refused(uint16_t port, uint16_t queue, uint64_t packets)
{
	if (!rt_trace_own_loop)
		RT_USDT(tx_refused, port, queue, packets);
	EMIT(tx_refused, port, queue, packets);
}

void rt_trace_session_open(uint32_t session, uint32_t reader)
{
	RT_USDT(session_open, session, reader);
	EMIT(session_open, session, reader);
}

void rt_trace_session_close(uint32_t session, uint32_t reader)
{
	RT_USDT(session_close, session, reader);
	EMIT(session_close, session, reader);
}

void rt_trace_latency(
	uint16_t port, uint16_t queue, uint32_t packets, uint64_t sum_cycles, uint64_t max_cycles)
{
	rt_trace_latency_usdt(port, queue, packets, sum_cycles, max_cycles);
	EMIT(latency, port, queue, packets, sum_cycles, max_cycles);
}
