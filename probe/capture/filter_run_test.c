/* SPDX-License-Identifier: BSD-3-Clause */
/* Interpreted programs return what libpcap's interpreter returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "common/program.h"
#include "filter_run.h"
#include "probe/test_eal.h"
#include "probe/test_program.h"

#define FRAME_LEN 60

static void test_any_program_as_with_libpcap(void **state)
{
	static const uint16_t tiny[] = {3, 0, 20, 1};
	unsigned passed = 0;

	for (unsigned n = 0; n < 50000; n++) {
		struct rte_mbuf *m = test_chain(0, FRAME_LEN, tiny, n % 2 ? 4 : 0);
		struct rt_insn prog[TEST_PROGRAM_LEN];
		uint8_t bytes[FRAME_LEN], *from = bytes;
		uint32_t expected;

		test_program(prog);
		assert_true(rt_program_valid(prog, TEST_PROGRAM_LEN));
		for (uint32_t i = 0; i < FRAME_LEN; i++)
			bytes[i] =
				(uint8_t)(test_random() % 3 ? test_random() % 20 : test_random());
		for (struct rte_mbuf *s = m; s; from += s->data_len, s = s->next)
			memcpy(rte_pktmbuf_mtod(s, void *), from, s->data_len);
		expected = bpf_filter((struct bpf_insn *)prog, bytes, FRAME_LEN, FRAME_LEN);
		passed += expected != 0;
		assert_int_equal(rt_filter_run(prog, m), expected);
		test_drop(m);
	}
	assert_in_range(passed, 5000, 45000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_program_as_with_libpcap),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
