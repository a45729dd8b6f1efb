/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of the vhost library, by a library of which this program has the functions: what it does
 * with real guests is in e2e/ovs/. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>

#include <cmocka.h>

#include "probe/capture/copy_bytes.h"
#include "probe/capture/epb.h"
#include "probe/capture/request.h"
#include "probe/dpdk/ports.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"
#include "test_vhost.h"

#define BURST 8
#define FIRST ((uint16_t)RTE_MAX_ETHPORTS)
#define TO    0 /* virtqueues of a pair */
#define FROM  1

#define SUBMIT 48 /* packets; more than are recorded before they are submitted */
#define FRAMES 5000

/* ---- the library ---- */

static struct {
	const char *path[8]; /* by device; NULL: none */
	uint16_t rings;
	uint16_t most; /* that it accepts, or has */
	uint32_t hold; /* enqueue waits; atomic */
	uint32_t held;
	void (*meanwhile)(void); /* happens during dequeue */
	bool ticks;              /* the clock's line is replaced during enqueue */
	uint64_t tsc;            /* at the last enqueue */
	uint32_t ring_at;        /* how busy the ring was at that time */
	const struct rt_ring *ring;
} lib;

TEST_EXPORT uint16_t rte_vhost_dequeue_burst(
	int vid, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n)
{
	n = RTE_MIN(n, lib.most);
	for (uint16_t i = 0; i < n; i++)
		pkts[i] = test_frame(i, 60);
	if (lib.meanwhile)
		lib.meanwhile();
	return n;
}

/* As a second later, and when the kernel's coarse clock has a later time: the line's base is after
 * the time that a hook has read. */
static void tick(void)
{
	struct rt_clock_line line = rt_latch_read(&rt_hook_clock);
	uint64_t second = rt_tsc() + rte_get_tsc_hz();

	while (rt_clock_coarse() <= rt_clock_ns(&line, lib.tsc))
		;
	line.ns_base = rt_clock_ns(&line, second);
	line.tsc_base = second;
	rt_latch_publish(&rt_hook_clock, &line);
}

TEST_EXPORT uint16_t rte_vhost_enqueue_burst(
	int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	lib.tsc = rt_tsc();
	lib.ring_at = lib.ring ? rt_load(&lib.ring->pub->busy) : 0;
	if (lib.ticks)
		tick();
	rt_store(&lib.held, 1);
	while (rt_load(&lib.hold))
		sched_yield();
	return RTE_MIN(n, lib.most);
}

#define DMA   (-2)
#define VCHAN 0xfedc

TEST_EXPORT uint16_t rte_vhost_async_try_dequeue_burst(int vid, uint16_t queue,
	struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma,
	uint16_t vchan)
{
	assert_true(dma == DMA && vchan == VCHAN);
	*flying = n - RTE_MIN(n, lib.most);
	return rte_vhost_dequeue_burst(vid, queue, pool, pkts, n);
}

/* Another thread may give accepted packets back at once, and fill them. */
TEST_EXPORT uint16_t rte_vhost_submit_enqueue_burst(
	int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, int16_t dma, uint16_t vchan)
{
	assert_true(dma == DMA && vchan == VCHAN);
	n = RTE_MIN(n, lib.most);
	for (uint16_t i = 0; i < n; i++)
		memset(rte_pktmbuf_mtod(pkts[i], void *), 0xee, rte_pktmbuf_data_len(pkts[i]));
	lib.most -= n;
	return n;
}

TEST_EXPORT int rte_vhost_get_ifname(int vid, char *buf, size_t len)
{
	if (vid < 0 || vid >= 8 || !lib.path[vid])
		return -1;
	strncpy(buf, lib.path[vid], len);
	buf[len - 1] = 0;
	return 0;
}

TEST_EXPORT uint16_t rte_vhost_get_vring_num(int vid)
{
	return lib.rings;
}

TEST_EXPORT int rte_vhost_driver_unregister(const char *path)
{
	return strcmp(path, "/refused") ? 0 : -1;
}

/* ---- the application ---- */

static const struct test_switch *app;

static uint16_t poll_device(int vid, uint16_t queue)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = app->dequeue(vid, queue, test_pool(), m, BURST);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static uint16_t send_to(int vid, uint16_t queue, uint16_t n)
{
	struct rte_mbuf *m[BURST];
	uint16_t sent;

	for (uint16_t i = 0; i < n; i++)
		m[i] = test_frame(i, 60);
	sent = app->enqueue(vid, queue, m, n);
	rte_pktmbuf_free_bulk(m, n);
	return sent;
}

static int watch(void **state)
{
	memset(&lib, 0, sizeof(lib));
	lib.rings = 2;
	lib.most = BURST;
	return rt_ports_watch(rt_hook_cut);
}

static int unwatch(void **state)
{
	rt_ports_unwatch();
	return 0;
}

static bool is_named(uint16_t port, const char *name)
{
	char is[RT_NAME_LEN];

	return !rt_port_name(port, is) && !strcmp(is, name);
}

static void test_ports_appear_when_they_are_polled(void **state)
{
	struct rt_msg_port d;
	uint32_t queues[2];

	assert_true(rt_vhost_is_on());
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	lib.path[3] = "/run/vm0";
	lib.rings = 8;
	assert_int_equal(poll_device(3, FROM), BURST);
	assert_int_equal(rt_port_next(0), FIRST);
	assert_int_equal(rt_port_next(FIRST + 1), RT_MAX_PORTS);
	assert_true(is_named(FIRST, "/run/vm0"));
	assert_int_equal(rt_port_describe(FIRST, &d), 0);
	assert_string_equal(d.driver, "vhost-user");
	assert_true(d.link_up && d.port_id == FIRST && d.nb_tx_queues == 4);
	assert_int_equal(rt_port_queues(FIRST, queues), 0);
	assert_true(queues[0] == 4 && queues[1] == 4);
	rt_vhost_tick();
	rt_vhost_tick();
	rt_vhost_tick();
	assert_int_equal(rt_port_describe(FIRST, &d), 0);
	assert_false(d.link_up); /* nothing polls it */
}

static void test_a_path_is_a_port_and_numbers_are_not(void **state)
{
	uint32_t generation;
	char name[64];

	lib.path[0] = "/run/a";
	lib.path[1] = "/run/b";
	poll_device(0, FROM);
	poll_device(1, FROM);
	uint16_t a = rt_port_next(0), b = rt_port_next(a + 1);
	assert_true(is_named(a, "/run/a") && is_named(b, "/run/b"));
	/* The guest of b reconnects, and gets the number that a had. */
	generation = rt_port_generation(b);
	lib.path[0] = "/run/b";
	app->name(0, name, sizeof(name));
	assert_string_equal(name, "/run/b");
	poll_device(0, FROM);
	assert_int_equal(rt_port_generation(b), generation);
	assert_int_equal(rt_port_next(b + 1), RT_MAX_PORTS);
	/* Without its name: within a round. */
	lib.path[0] = "/run/c";
	rt_vhost_tick();
	poll_device(0, FROM);
	uint16_t c = rt_port_next(b + 1);
	assert_true(is_named(c, "/run/c"));
	/* Removed, and added again. */
	assert_int_equal(app->unregister("/refused"), -1);
	assert_int_equal(app->unregister("/run/none"), 0);
	assert_int_equal(app->unregister("/run/b"), 0);
	assert_false(rt_port_alive(b));
	assert_int_not_equal(rt_port_generation(b), generation);
	lib.path[5] = "/run/b";
	poll_device(5, FROM);
	assert_true(rt_port_alive(b) && is_named(b, "/run/b"));
}

static void test_odd_devices_and_names(void **state)
{
	static char longer[10000];

	memset(longer, 'x', sizeof(longer) - 1);
	for (int vid = -1; vid < 5000; vid += 1000)
		assert_int_equal(poll_device(vid, FROM), BURST); /* have no name */
	lib.path[7] = "/run/queues";
	assert_int_equal(poll_device(7, UINT16_MAX), BURST);
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	lib.path[2] = longer;
	lib.rings = UINT16_MAX;
	poll_device(2, FROM);
	uint16_t p = rt_port_next(0);
	char name[RT_NAME_LEN];
	uint32_t queues[2];

	assert_int_equal(rt_port_name(p, name), 0);
	assert_int_equal(strlen(name), RT_NAME_LEN - 1);
	assert_int_equal(rt_port_queues(p, queues), 0);
	assert_true(queues[0] == 128 && queues[1] == 128);
}

static uint16_t poll_path(const char *path)
{
	lib.path[0] = path;
	rt_vhost_tick();
	assert_int_equal(poll_device(0, FROM), BURST);
	return rt_vhost_ids[0];
}

static void test_more_paths_than_ports(void **state)
{
	static char path[RT_VHOST_PORTS + 1][32];

	for (int i = 0; i <= RT_VHOST_PORTS; i++)
		snprintf(path[i], sizeof(path[i]), "/run/many%d", i);
	for (int i = 0; i < RT_VHOST_PORTS; i++)
		assert_true(rt_port_alive(poll_path(path[i])));
	assert_int_equal(poll_path(path[RT_VHOST_PORTS]), RT_VHOST_NONE);
	/* One that is gone makes room, as soon as sessions have noticed. */
	assert_int_equal(app->unregister(path[17]), 0);
	assert_int_equal(poll_path(path[RT_VHOST_PORTS]), RT_VHOST_NONE);
	assert_true(is_named(poll_path(path[RT_VHOST_PORTS]), path[RT_VHOST_PORTS]));
	assert_int_equal(poll_path(path[17]), RT_VHOST_NONE);
}

static struct rt_session *capture_if(
	uint32_t on_full, uint64_t buffer, const struct rt_insn *insns, uint32_t insn_count)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 64,
		.insn_first = insns ? 0 : RT_NO_FILTER,
		.insn_count = insn_count};
	const struct rt_msg_open open = {
		.insn_count = insn_count, .buffer_size = buffer, .on_full = on_full};
	struct rt_session *s = test_session_open(&open, &target, insns);
	struct rt_clock_line line = rt_latch_read(&rt_hook_clock);

	test_session_arm(s, &line);
	return s;
}

static struct rt_session *capture(uint32_t on_full)
{
	return capture_if(on_full, TEST_RING, NULL, 0);
}

static void test_what_was_accepted_is_recorded_once(void **state)
{
	struct rt_session *s;
	uint64_t before;

	lib.path[1] = "/run/vm1";
	poll_device(1, FROM);
	s = capture(RT_ON_FULL_DROP);
	assert_int_equal(rt_session_linked(s), 2);
	assert_int_equal(poll_device(1, FROM), BURST);
	assert_int_equal(test_session_sum(s).captured, BURST);
	lib.ring = &s->rings[rt_thread_self->index];
	lib.most = 3;
	before = rt_tsc();
	assert_int_equal(send_to(1, TO, 5), 3);
	assert_int_equal(test_session_sum(s).captured, BURST + 3);
	lib.most = 0;
	assert_int_equal(send_to(1, TO, 2), 0);
	assert_int_equal(test_session_sum(s).seen, BURST + 3);
	/* The ring was busy while the guest could answer, and the time is before that. */
	assert_true(lib.ring_at && !rt_load(&lib.ring->pub->busy));
	lib.most = 1;
	struct rt_clock_line line = rt_latch_read(&rt_hook_clock);
	lib.ticks = true;
	assert_int_equal(send_to(1, TO, 1), 1);
	lib.ticks = false;
	assert_true(lib.ring->last_ns <= rt_clock_ns(&line, lib.tsc));
	assert_true(lib.ring->last_ns >= rt_clock_ns(&line, before));
	test_session_end(s);
	assert_int_equal(send_to(1, TO, 1), 1);
	rt_session_free(s);
}

static uint16_t try_poll(int vid)
{
	struct rte_mbuf *m[BURST];
	int flying = -1;
	uint16_t n = app->try_dequeue(vid, FROM, test_pool(), m, BURST, &flying, DMA, VCHAN);

	assert_int_equal(flying, BURST - n);
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* Frames of `first`, `first` + 1, ..., again and again until the library has taken them. */
static void submit_all(uint32_t first, uint16_t n)
{
	struct rte_mbuf *m[SUBMIT];

	for (uint16_t i = 0; i < n; i++)
		m[i] = test_frame(first + i, 60);
	for (uint16_t i = 0, k; i < n; i += k) {
		lib.most = test_random() % 3 ? (uint16_t)(test_random() % SUBMIT) : 0;
		k = app->submit(1, TO, m + i, n - i, DMA, VCHAN);
		rte_pktmbuf_free_bulk(m + i, k);
	}
}

/* The records of this thread's ring are those of frames 0 to n - 1: all, or the odd ones. */
static void assert_records(const struct rt_session *s, uint32_t n, bool odd)
{
	const struct rt_ring *r = &s->rings[rt_thread_self->index];
	const struct rt_chunks *c = r->chunks;
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p;

		if (odd && !(test_byte(i, 0) & 1))
			continue;
		p = c->data + ((uint64_t)r->pub_order[at >> c->shift] << c->shift) + (at & r->mask);
		if (!*(const rt_u32 *)p) { /* RT_CHUNK_END */
			at = (at | r->mask) + 1;
			p = c->data + ((uint64_t)r->pub_order[at >> c->shift] << c->shift);
		}
		for (uint32_t k = 0; k < 60; k++)
			assert_int_equal(p[RT_EPB_HEADER + k], test_byte(i, k));
		at += ((const rt_u32 *)p)[1];
	}
	assert_int_equal(at, rt_load(&r->pub->head));
}

static void test_submitted_packets_are_read_before_and_recorded_once(void **state)
{
	const struct rt_insn odd[] = {{BPF_LD | BPF_B | BPF_ABS, 0, 0, 0},
		{BPF_JMP | BPF_JSET | BPF_K, 0, 1, 1}, {BPF_RET | BPF_K, 0, 0, 65535},
		{BPF_RET | BPF_K, 0, 0, 0}};
	struct rt_session *s[2];
	struct rt_seg_count sum;
	uint32_t n = 0;

	lib.path[1] = "/run/vm1";
	assert_int_equal(try_poll(1), BURST); /* makes the port */
	s[0] = capture_if(RT_ON_FULL_DROP, 16 << 20, NULL, 0);
	s[1] = capture_if(RT_ON_FULL_DROP, 16 << 20, odd, 4);
	for (unsigned burst = 1; n < FRAMES; burst = burst % SUBMIT + 1) {
		submit_all(n, (uint16_t)burst);
		n += burst;
	}
	for (int i = 0; i < 2; i++) {
		sum = test_session_sum(s[i]);
		assert_int_equal(sum.seen, n);
		assert_int_equal(sum.captured + sum.filtered, n);
		assert_true(i ? sum.filtered > n / 4 : !sum.filtered);
		assert_records(s[i], n, i);
	}
	lib.most = 3;
	assert_int_equal(try_poll(1), 3);
	assert_int_equal(test_session_sum(s[0]).captured, n + 3);
	for (int i = 0; i < 2; i++) {
		test_session_end(s[i]);
		rt_session_free(s[i]);
	}
}

static void test_submitted_packets_of_a_session_that_may_wait(void **state)
{
	struct rt_session *s;

	lib.path[1] = "/run/vm1";
	assert_int_equal(try_poll(1), BURST);
	s = capture(RT_ON_FULL_WAIT);
	submit_all(0, SUBMIT); /* each try counts */
	assert_true(test_session_sum(s).captured >= SUBMIT);
	test_session_end(s);
	submit_all(0, 1);
	rt_session_free(s);
}

static bool refuses;

int __real_mprotect(void *at, size_t size, int protection);
int __wrap_mprotect(void *at, size_t size, int protection);

int __wrap_mprotect(void *at, size_t size, int protection)
{
	errno = EACCES;
	return refuses ? -1 : __real_mprotect(at, size, protection);
}

static void test_a_refusal_is_logged(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	rt_ports_unwatch();
	rte_openlog_stream(f);
	rte_log_set_global_level(RTE_LOG_WARNING);
	refuses = true;
	assert_false(rt_ports_watch(rt_hook_cut));
	refuses = false;
	rte_log_set_global_level(RTE_LOG_ERR);
	rte_openlog_stream(NULL);
	fclose(f);
	assert_false(rt_vhost_is_on());
	assert_non_null(
		strstr(text, "vhost-user ports are not visible: cannot divert calls: Perm"));
	free(text);
	lib.path[1] = "/run/vm1";
	assert_int_equal(poll_device(1, FROM), BURST); /* as before */
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
}

static void *send_one(void *arg)
{
	return send_to(1, TO, 1) == 1 ? arg : NULL;
}

static void test_a_thread_that_is_inside_holds_up_the_end(void **state)
{
	struct rt_session *s;
	pthread_t thread;
	void *ok = NULL;

	lib.path[1] = "/run/vm1";
	poll_device(1, FROM);
	s = capture(RT_ON_FULL_DROP);
	rt_store(&lib.hold, 1);
	assert_false(pthread_create(&thread, NULL, send_one, &lib));
	while (!rt_load(&lib.held))
		sched_yield();
	rt_session_stop(s);
	assert_false(rt_session_stopped(s));
	rt_vhost_end();
	assert_false(rt_session_stopped(s));
	rt_store(&lib.hold, 0);
	while (!rt_session_stopped(s))
		sched_yield();
	pthread_join(thread, &ok);
	assert_ptr_equal(ok, &lib);
	assert_int_equal(test_session_sum(s).captured, 0); /* unlinked before the call returned */
	rt_session_free(s);
}

static void test_a_call_that_outlives_the_end_leaves_no_port(void **state)
{
	lib.path[1] = "/run/vm1";
	assert_int_equal(poll_device(1, FROM), BURST);
	lib.meanwhile = rt_ports_unwatch;
	assert_int_equal(poll_device(1, FROM), BURST);
	lib.meanwhile = NULL;
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	assert_false(rt_ports_watch(rt_hook_cut));
	assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
	assert_int_equal(poll_device(1, FROM), BURST);
	assert_true(is_named(rt_port_next(0), "/run/vm1"));
}

static struct {
	uint32_t stop;
	uint64_t sent;
} traffic;

static void *keep_sending(void *arg)
{
	while (!rt_load(&traffic.stop)) {
		(void)poll_device(1, FROM);
		rt_store(&traffic.sent, traffic.sent + send_to(1, TO, 2));
	}
	return NULL;
}

static void test_calls_are_diverted_again_and_again_under_traffic(void **state)
{
	uint64_t captured = 0;
	pthread_t thread;

	lib.path[1] = "/run/vm1";
	assert_false(pthread_create(&thread, NULL, keep_sending, NULL));
	for (int i = 0; i < 50; i++) {
		struct rt_session *s = capture(RT_ON_FULL_DROP);
		uint64_t sent = rt_load(&traffic.sent);

		while (rt_load(&traffic.sent) < sent + 4) {
			rt_session_rescan(s);
			sched_yield();
		}
		test_session_end(s);
		captured += test_session_sum(s).seen;
		rt_session_free(s);
		rt_ports_unwatch();
		assert_int_equal(rt_port_next(0), RT_MAX_PORTS);
		assert_false(rt_ports_watch(rt_hook_cut));
	}
	rt_store(&traffic.stop, 1);
	pthread_join(thread, NULL);
	assert_true(captured > 0);
}

static int load_app(void)
{
	char path[4096] = "";
	void *handle;

	if (readlink("/proc/self/exe", path, sizeof(path) - 32) <= 0)
		return -1;
	strcpy(strrchr(path, '/'), "/libtest-vhost.so");
	handle = dlopen(path, RTLD_NOW);
	if (!handle)
		return fprintf(stderr, "%s\n", dlerror());
	app = dlsym(handle, "test_switch");
	return !app;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_ports_appear_when_they_are_polled, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_path_is_a_port_and_numbers_are_not, watch, unwatch),
		cmocka_unit_test_setup_teardown(test_odd_devices_and_names, watch, unwatch),
		cmocka_unit_test_setup_teardown(test_more_paths_than_ports, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_what_was_accepted_is_recorded_once, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_submitted_packets_are_read_before_and_recorded_once, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_submitted_packets_of_a_session_that_may_wait, watch, unwatch),
		cmocka_unit_test_setup_teardown(test_a_refusal_is_logged, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_thread_that_is_inside_holds_up_the_end, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_a_call_that_outlives_the_end_leaves_no_port, watch, unwatch),
		cmocka_unit_test_setup_teardown(
			test_calls_are_diverted_again_and_again_under_traffic, watch, unwatch),
	};

	test_stats_start();
	return load_app() || cmocka_run_group_tests(tests, NULL, NULL);
}
