/* SPDX-License-Identifier: BSD-3-Clause */
/* Time stamps belong to one mbuf and to one monitoring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "test_latency.h"

/* Places of mbufs this many lines apart differ in the upper 16 bits, whatever is added below. */
static bool are_distinguished(uint64_t lines)
{
	uint64_t apart = rt_stamp_place((void *)(lines << 6));

	return apart >= 1ull << 48 && -apart >= 1ull << 48;
}

static void test_places_differ_in_their_generation(void **state)
{
	const uint64_t page = (2u << 20) / 64, last = 1ull << (48 - 6);

	for (uint64_t i = 1; i < RT_STAMP_PRIME; i++) {
		assert_true(are_distinguished(i));
		assert_true(are_distinguished(i * 39)); /* mbufs of a pool */
		assert_true(are_distinguished(i * page));
		assert_true(are_distinguished(last - last % RT_STAMP_PRIME - i));
	}
	assert_false(are_distinguished(RT_STAMP_PRIME));
}

/* Sends copies with flag and field at this distance from their originals. */
static void send_copies(char *room, size_t bytes_apart)
{
	struct rte_mbuf *original = (struct rte_mbuf *)room, *copy = (void *)(room + bytes_apart);
	uint64_t before;

	*original = *pkts[0];
	assert_int_equal(rte_eth_tx_burst(in, 0, &original, 1), 1);
	before = unstamped(out);
	assert_int_equal(test_port_receive(in, &original, 1), 1);
	assert_true(original->ol_flags & rt_stat_mode.latency_flag);
	*copy = *original;
	hand_over(out, &copy, 1);
	assert_int_equal(unstamped(out), before + 1);
	assert_int_equal(test_port_receive(out, &copy, 1), 1);
}

static void test_copies_are_detected_at_any_distance(void **state)
{
	const size_t object = 39 * 64; /* header, 128 + 2176 bytes, trailer */
	const size_t chunk = 2u << 20, size = 512 * chunk;
	char *room = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(room, MAP_FAILED);
	madvise(room, size, MADV_NOHUGEPAGE); /* only little of it is used */
	take_in(in, 1);
	for (size_t i = 1; i < RT_STAMP_PRIME; i += 97) /* in one pool */
		send_copies(room, i * object);
	for (size_t i = 1; i < 512; i++) /* from one pool to another */
		send_copies(room, i * chunk);
	assert_int_equal(timed(in, out), 0);
	rte_pktmbuf_free(pkts[0]);
	munmap(room, size);
}

/* The number of the monitoring has 16 bits in time stamps, of which 0 stands for none. */
static void test_generations_wrap(void **state)
{
	static struct rt_monitor keep;

	test_monitor(&keep, RT_COLLECT_POLLS, 1);
	for (unsigned i = 0; i < 2; i++) {
		test_monitor(&mon, 0, 1);
		if (!i)
			rt_stat_mode.latency_generation = UINT16_MAX - 1;
		test_monitor(&mon, RT_COLLECT_LATENCY, 1);
		rt_store(&rt_stat_mode.latency_on_tsc, rt_tsc() - (1ull << 43));
		take_in(in, BURST);
		hand_over(out, pkts, BURST);
		assert_int_equal(timed(in, out), (i + 1) * BURST);
		hand_over(in, pkts, BURST); /* they have been sent */
		assert_int_equal(timed(in, in), 0);
		assert_int_equal(test_port_receive(out, pkts, BURST), BURST);
		assert_int_equal(test_port_receive(in, pkts, BURST), BURST);
		rte_pktmbuf_free_bulk(pkts, BURST);
	}
	assert_int_equal(rt_stat_mode.latency_generation, UINT16_MAX + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_differ_in_their_generation),
		with_ports(test_copies_are_detected_at_any_distance),
		with_ports(test_generations_wrap),
	};

	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
