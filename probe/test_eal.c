/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_mbuf_dyn.h>

#include "common/mbuf_history.h"
#include "common/proto.h"
#include "probe/capture/epb.h"
#include "probe/capture/filter_job.h"
#include "probe/hook/hook.h"
#include "reader/memory/memory.h"
#include "reader/tunables.h"
#include "test_eal.h"

#define POOL_MBUFS 2047
#define ROOM       (10240 + RTE_PKTMBUF_HEADROOM)

static char runtime_dir[128];

/* Memory that DPDK's constructors and drivers never free is not a leak of the probe. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:librte_\n";
}

static void remove_runtime_dir(void)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/dpdk_telemetry.v2", runtime_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/" RT_SOCKET_NAME, runtime_dir);
	unlink(path);
	rmdir(runtime_dir);
}

#define HANG_MS \
	120000 /* longer waits for the probe are hangs: no test depends on the machine's speed */

void test_eal_start(void)
{
	char prefix[32];
	char *argv[] = {"unit-test", "-l", "0", "--no-huge", "-m", "128", "--no-shconf", "--no-pci",
		"--no-telemetry", "--log-level=error", "--file-prefix", prefix, NULL};

	snprintf(prefix, sizeof(prefix), "ringtap-unit-%d", (int)getpid());
	if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) < 0)
		abort();
	snprintf(runtime_dir, sizeof(runtime_dir), "%s", rte_eal_get_runtime_dir());
	atexit(remove_runtime_dir);
	rt_reader_limits.answer_ms = rt_reader_limits.telemetry_ms = HANG_MS;
	rt_reader_limits.open_ms = rt_reader_limits.filter_ms = HANG_MS;
}

/* A process of the machine that looks for applications, such as `ringtap list`, finds that of a
 * test as well, and would change what the test counts. Only processes of the test's group are let
 * in: meson makes one for each test. */
bool __real_rt_accept_allows(int fd);
bool __wrap_rt_accept_allows(int fd);
bool __wrap_rt_accept_allows(int fd)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid &&
	       getpgid(peer.pid) == getpgrp() && __real_rt_accept_allows(fd);
}

void test_any_cpu(void)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		CPU_SET(cpu, &all);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
}

struct rte_mempool *test_pool(void)
{
	static struct rte_mempool *pool;

	if (!pool)
		pool = rte_pktmbuf_pool_create("test", POOL_MBUFS, 0, 0, ROOM, SOCKET_ID_ANY);
	if (!pool)
		abort();
	return pool;
}

int test_add_history(void)
{
	const struct rte_mbuf_dynfield field = {
		.name = RT_HISTORY_FIELD, .size = sizeof(uint64_t), .align = sizeof(uint64_t)};
	int offset = rte_mbuf_dynfield_register(&field);

	if (offset < 0)
		abort();
	return offset;
}

uint8_t test_byte(uint32_t seed, uint32_t off)
{
	return (uint8_t)((seed + 1) * 2654435761u >> 8) ^ (uint8_t)(off * 167 + (off >> 8));
}

static struct rte_mbuf *segment(uint32_t seed, uint32_t off, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());
	uint8_t *p;

	if (!m)
		abort();
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	if (!p)
		abort();
	for (uint32_t i = 0; i < len; i++)
		p[i] = test_byte(seed, off + i);
	return m;
}

struct rte_mbuf *test_frame(uint32_t seed, uint32_t len)
{
	return segment(seed, 0, len);
}

struct rte_mbuf *test_chain(uint32_t seed, uint32_t len, const uint16_t *cuts, unsigned cut_count)
{
	struct rte_mbuf *head = NULL, **link = &head;
	uint32_t off = 0;

	for (unsigned i = 0; i <= cut_count; i++) {
		uint32_t n = i < cut_count ? RTE_MIN(cuts[i], len - off) : len - off;

		*link = segment(seed, off, n);
		link = &(*link)->next;
		off += n;
	}
	head->nb_segs = (uint16_t)(cut_count + 1);
	head->pkt_len = len;
	return head;
}

void test_drop(struct rte_mbuf *m)
{
	rte_pktmbuf_free_bulk(&m, 1);
}

static void set_up_tap(struct test_ring *t, enum rt_direction dir)
{
	t->tap[dir] = (struct rt_tap){.session = t->session,
		.index = dir,
		.if_index = 5,
		.snaplen = rt_epb_longest(RT_CHUNK_MIN),
		.queue = 77,
		.direction = dir,
		.nic_ts_offset = -1};
	rt_epb_prepare(&t->tap[dir]);
}

void test_shm_memory(const struct rt_shm *m, int fds[RT_FD_COUNT])
{
	struct rt_msg_layout l = {.ring_count = m->ring_count,
		.share_count = m->share_count,
		.filled = m->filled,
		.if_capacity = m->h.if_capacity,
		.tap_capacity = m->tap_capacity,
		.chunk_count = m->chunk_count,
		.order_count = m->order_count,
		.chunk_size = m->chunk_size};
	struct rt_msg_fates f = {.bits = m->h.fate_bits,
		.stride = m->h.fate_stride,
		.bytes = rt_shm_fate_bytes(&m->h)};
	struct rt_memory memory;
	char err[RT_TEXT_LEN];

	memcpy(l.bytes, m->bytes, sizeof(l.bytes));
	if (rt_memory_make(
		    &memory, &l, f.bytes ? &f : NULL, m->bytes[RT_FD_DATA], err, sizeof(err)))
		abort();
	for (int i = 0; i < RT_FD_COUNT; i++) {
		fds[i] = memory.fd[i];
		memory.fd[i] = -1;
	}
	rt_memory_free(&memory);
}

void test_shm_make(struct rt_shm *m, uint32_t rings, uint64_t buffer_size, uint32_t taps)
{
	int fds[RT_FD_COUNT];
	char err[RT_TEXT_LEN];

	rt_shm_lay_out(m, &(struct rt_shm_numbers){.rings = rings,
				  .rows = rings,
				  .shares = rings,
				  .buffer_size = buffer_size,
				  .taps = taps});
	test_shm_memory(m, fds);
	if (rt_shm_attach(m, fds, err))
		abort();
	for (int i = 0; i < RT_FD_COUNT; i++)
		close(fds[i]);
}

void test_session_ready(struct rt_session *s, const struct rt_clock_line *clock)
{
	struct rt_msg_layout layout;
	struct rt_msg_fates fates;
	int fds[RT_FD_COUNT];
	char err[RT_TEXT_LEN];

	rt_session_lay_out(s, &layout, &fates);
	test_shm_memory(&s->shm, fds);
	if (rt_session_ready(s, fds, clock, err))
		fail_msg("%s", err);
	for (int i = 0; i < RT_FD_COUNT; i++)
		close(fds[i]);
}

void test_session_arm(struct rt_session *s, const struct rt_clock_line *clock)
{
	test_session_ready(s, clock);
	rt_session_arm(s, clock);
}

void test_session_end(struct rt_session *s)
{
	rt_session_stop(s);
	while (!rt_session_stopped(s))
		sched_yield();
	while (!rt_hook_reclaim())
		sched_yield();
}

uint64_t test_session_room(const struct rt_session *s)
{
	return (s->chunks.count - s->chunks.alone) * s->chunks.size - RT_CHUNK_GUARD;
}

const struct rt_seg_count *test_session_row(const struct rt_session *s, uint32_t i)
{
	return i < s->rows ? &s->shm.counts[(size_t)i * s->shm.tap_capacity] : s->shm.orphans;
}

struct rt_seg_count test_session_sum(const struct rt_session *s)
{
	struct rt_seg_count c = {0};

	for (uint32_t i = 0; i <= s->rows; i++) {
		const struct rt_seg_count *row = test_session_row(s, i);

		for (uint32_t t = 0; t < s->tap_capacity; t++) {
			c.seen += row[t].seen;
			c.captured += row[t].captured;
			c.filtered += row[t].filtered;
			c.not_sampled += row[t].not_sampled;
			c.cut += row[t].cut;
			c.evicted += row[t].evicted;
			for (int k = 0; k < RT_LOSS_COUNT; k++)
				c.lost[k] += row[t].lost[k];
		}
	}
	return c;
}

struct ringtap_capture *test_capture(const char *dir)
{
	static const struct ringtap_target all = {
		.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	static const struct ringtap_capture_options small = {
		.size = sizeof(small), .buffer_size = TEST_RING};
	struct ringtap_capture *cap;

	assert_int_equal(ringtap_capture_create(&cap, NULL), 0);
	if (ringtap_capture_attach(cap, dir, &all, 1, &small))
		fail_msg("%s", ringtap_capture_error(cap));
	assert_int_equal(ringtap_capture_start(cap), 0);
	return cap;
}

int test_run_both_copies(int (*run)(const char *group))
{
	rt_epb_push_fn generic = rt_epb_push;
	int failed;

	test_eal_start();
	failed = run("generic");
	rt_epb_init();
	if (rt_epb_push != generic)
		failed += run("for this CPU");
	return failed;
}

uint32_t test_random(void)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

void test_ring_make(struct test_ring *t, uint64_t size)
{
	memset(t, 0, sizeof(*t));
	test_shm_make(&t->shm, 1, size, 2);
	t->session = aligned_alloc(128, (sizeof(*t->session) + 127) / 128 * 128);
	memset(t->session, 0, sizeof(*t->session));
	if (rt_chunks_init(&t->chunks, &t->ring, t->shm.data, t->shm.chunk_size, t->shm.chunk_count,
		    t->shm.order_count))
		abort();
	t->ring = (struct rt_ring){.pub_order = t->shm.orders,
		.pub = &t->shm.rings[0],
		.peer = &t->shm.tails[0],
		.counts = t->shm.counts,
		.pending = t->pending};
	rt_chunks_empty(&t->chunks, &t->ring);
	rt_chunks_use(&t->chunks, &t->ring, RT_NODE_UNKNOWN);
	set_up_tap(t, RT_DIR_RX);
	set_up_tap(t, RT_DIR_TX);
}

void test_ring_free(struct test_ring *t)
{
	rt_shm_destroy(&t->shm);
	rt_chunks_free(&t->chunks);
	free(t->session);
}

void test_ring_push(
	struct test_ring *t, enum rt_direction dir, struct rte_mbuf **pkts, unsigned n, uint64_t ns)
{
	struct rt_ring *r = &t->ring;

	rt_ring_begin(r);
	r->last_ns = ns;
	r->counts[dir].seen += n;
	rt_epb_push(r, &t->tap[dir], pkts, n, ns);
	rt_ring_publish(r);
	rt_ring_end(r);
}

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

/* pcapng, sections 3.5 and 4.3. */
static void take_option(struct test_record *r, unsigned code, unsigned len, const uint8_t *v)
{
	switch (code) {
	case 2:
		assert_int_equal(len, 4);
		r->flags = word(v);
		break;
	case 3:
		assert_int_equal(len, 5);
		assert_int_equal(v[0], 5); /* Toeplitz */
		r->hash = word(v + 1);
		r->has_hash = true;
		assert_memory_equal(v + 5, "\0\0\0", 3);
		break;
	case 4:
		assert_int_equal(len, 8);
		memcpy(&r->dropped, v, 8);
		r->has_dropped = true;
		break;
	case 5:
		assert_int_equal(len, 8);
		memcpy(&r->id, v, 8);
		r->has_id = true;
		break;
	case 6:
		assert_int_equal(len, 4);
		r->queue = word(v);
		break;
	case 7:
		assert_int_equal(len, 16);
		r->verdict = v;
		break;
	default: fail_msg("unknown option %u", code);
	}
}

static void take_options(struct test_record *r, const uint8_t *p, const uint8_t *end)
{
	for (;;) {
		uint32_t w = word(p), len = w >> 16;

		assert_true(p + 4 <= end);
		p += 4;
		if (!w)
			break;
		assert_true(p + ((len + 3) & ~3u) <= end);
		take_option(r, w & 0xffff, len, p);
		p += (len + 3) & ~3u;
	}
	assert_ptr_equal(p, end);
}

const uint8_t *test_ring_at(const struct test_ring *t, uint64_t pos)
{
	uint64_t size = t->shm.chunk_size, number = pos / size;

	return t->shm.data + t->shm.orders[number % t->shm.order_count] * size + pos % size;
}

bool test_ring_next(struct test_ring *t, struct test_record *r)
{
	uint64_t head = rt_load_acquire(&t->shm.rings[0].head);
	const uint8_t *p;
	uint32_t padded;

	memset(r, 0, sizeof(*r));
	if (t->read == head)
		return false;
	p = test_ring_at(t, t->read);
	if (word(p) == RT_CHUNK_END) {
		t->read = (t->read / t->shm.chunk_size + 1) * t->shm.chunk_size;
		p = test_ring_at(t, t->read);
	}
	assert_int_equal(word(p), 6);
	r->total = word(p + 4);
	assert_int_equal(r->total % 4, 0);
	assert_in_range(r->total, RT_EPB_MIN, head - t->read);
	assert_int_equal(word(p + r->total - 4), r->total);
	r->if_index = word(p + 8);
	r->ns = (uint64_t)word(p + 12) << 32 | word(p + 16);
	r->captured = word(p + 20);
	r->original = word(p + 24);
	padded = (r->captured + 3) & ~3u;
	assert_in_range(padded, 0, r->total - RT_EPB_MIN);
	r->data = p + 28;
	for (uint32_t i = r->captured; i < padded; i++)
		assert_int_equal(r->data[i], 0);
	take_options(r, r->data + padded, p + r->total - 4);
	t->read += r->total;
	return true;
}

void test_ring_release(struct test_ring *t)
{
	rt_store_release(&t->shm.tails[0].tail, t->read); /* pairs with rt_ring_refresh() */
}

static struct rt_filter_job *compiled(const struct rt_request *req)
{
	struct rt_filter_job *job = rt_filter_job_new(req, true);

	assert_non_null(job);
	while (!job->done)
		rt_filter_job_step(job);
	return job;
}

static void *copy(const void *from, size_t size)
{
	return memcpy(malloc(size), from, size);
}

struct rt_msg_sample test_sample = {.secret = {1, 2}, .every = 2};
struct rt_msg_first test_first;

struct rt_session *test_session_open(const struct rt_msg_open *open,
	const struct rt_msg_target *target, const struct rt_insn *insns)
{
	struct rt_request req = {.open = *open,
		.targets = copy(target, sizeof(*target)),
		.sample = test_sample,
		.first = test_first};
	char err[RT_TEXT_LEN] = "";
	struct rt_filter_job *job;
	struct rt_session *s;

	req.open.target_count = 1;
	if (target->insn_first != RT_NO_FILTER)
		req.insns = copy(insns, target->insn_count * sizeof(*insns));
	job = compiled(&req);
	if (rt_session_open(&s, &job->req, err))
		fail_msg("%s", err);
	rt_filter_job_free(job);
	return s;
}

int test_set_filter(struct rt_session *s, const struct rt_insn *insn, char *err)
{
	struct rt_filter_job *job;
	struct rt_request req;
	int ret = rt_session_filter_request(
		s, &req, insn ? copy(insn, sizeof(*insn)) : NULL, insn != NULL, err);

	if (ret) {
		rt_request_free(&req);
		return ret;
	}
	job = compiled(&req);
	ret = job->ret;
	snprintf(err, RT_TEXT_LEN, "%s", job->err);
	if (!ret)
		rt_session_set_filter(s, &job->req);
	rt_filter_job_free(job);
	return ret;
}
