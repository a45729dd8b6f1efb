/* SPDX-License-Identifier: BSD-3-Clause */
/* The vhost library, as far as tests need it, and what they share. */
#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/dpdk/ports.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "test_vhost.h"

struct test_library lib;
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

TEST_EXPORT uint16_t rte_vhost_async_try_dequeue_burst(int vid, uint16_t queue,
	struct rte_mempool *pool, struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma,
	uint16_t vchan)
{
	assert_true(dma == TEST_DMA && vchan == TEST_VCHAN);
	*flying = n - RTE_MIN(n, lib.most);
	return rte_vhost_dequeue_burst(vid, queue, pool, pkts, n);
}

/* Another thread may give accepted packets back at once, and fill them. */
TEST_EXPORT uint16_t rte_vhost_submit_enqueue_burst(
	int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, int16_t dma, uint16_t vchan)
{
	assert_true(dma == TEST_DMA && vchan == TEST_VCHAN);
	n = RTE_MIN(n, lib.most);
	for (uint16_t i = 0; i < n; i++)
		memset(rte_pktmbuf_mtod(pkts[i], void *), 0xee, rte_pktmbuf_data_len(pkts[i]));
	if (lib.leaves)
		lib.leaves();
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

const struct test_switch *app;

uint16_t test_vhost_poll(int vid, uint16_t queue)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = app->dequeue(vid, queue, test_pool(), m, BURST);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

int test_watch(void **state)
{
	memset(&lib, 0, sizeof(lib));
	lib.rings = 2;
	lib.most = BURST;
	return rt_ports_watch(rt_hook_cut);
}

int test_unwatch(void **state)
{
	rt_ports_unwatch();
	return 0;
}

struct rt_session *test_vhost_capture(const struct rt_msg_open *open, const struct rt_insn *insns)
{
	struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = 64,
		.insn_first = insns ? 0 : RT_NO_FILTER,
		.insn_count = open->insn_count};
	struct rt_session *s = test_session_open(open, &target, insns);
	struct rt_clock_line line = rt_latch_read(&rt_hook_clock);

	test_session_arm(s, &line);
	return s;
}

int test_load_app(void)
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
