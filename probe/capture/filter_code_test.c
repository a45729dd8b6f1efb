/* SPDX-License-Identifier: BSD-3-Clause */
/* Which filters have a fast version that DPDK accepts, and up to which byte it reads. filter_test.c
 * compares what they select. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pcap/pcap.h>
#include <rte_bpf.h>
#include <rte_malloc.h>

#include "filter_code.h"
#include "probe/core/test_eal.h"

static struct rte_bpf_prm *convert(const char *expression)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 262144);
	struct bpf_program prog;
	struct rte_bpf_prm *prm;

	assert_non_null(pcap);
	assert_int_equal(pcap_compile(pcap, &prog, expression, 1, PCAP_NETMASK_UNKNOWN), 0);
	prm = rte_bpf_convert(&prog);
	assert_non_null(prm);
	pcap_freecode(&prog);
	pcap_close(pcap);
	return prm;
}

/* Bytes that the fast version reads; 0: there is none. */
static uint32_t reach_of(const char *expression)
{
	struct rte_bpf_prm *converted = convert(expression);
	struct rte_bpf_prm prm = {.prog_arg = {.type = RTE_BPF_ARG_PTR}};
	uint32_t reach = 0;
	struct ebpf_insn *insns =
		rt_code_quick(converted->ins, converted->nb_ins, &prm.nb_ins, &reach);
	struct rte_bpf *bpf;

	rte_free(converted);
	if (!insns)
		return 0;
	prm.ins = insns;
	prm.prog_arg.size = reach;
	bpf = rte_bpf_load(&prm);
	free(insns);
	if (!bpf)
		fail_msg("%s: DPDK does not take it", expression);
	rte_bpf_destroy(bpf);
	return reach;
}

static void test_common_filters_read_only_short_frames(void **state)
{
	static const char *const expressions[] = {"arp", "tcp", "udp port 53", "tcp port 80 or 443",
		"host 10.0.0.1", "ip6 host ff02::1", "portrange 1-1023", "vlan 5 and ip",
		"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", "ether host 00:11:22:33:44:55",
		"ip[8] < 5", "icmp[icmptype] = icmp-echo", "not (tcp port 80) and not arp"};

	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		uint32_t reach = reach_of(expressions[i]);

		if (reach < 12 || reach > 60)
			fail_msg("%s looks at %u bytes", expressions[i], reach);
	}
}

static void test_filters_of_lengths_have_no_fast_version(void **state)
{
	assert_int_equal(reach_of("less 100"), 0);
	assert_int_equal(reach_of("ether[len - 4:4] = 0"), 0);
}

static void test_filters_of_far_bytes_have_no_fast_version(void **state)
{
	assert_int_equal(reach_of("ether[3000] = 0"), 0);
	assert_int_equal(reach_of("ether[1000:4] = 0"), 1004);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_common_filters_read_only_short_frames),
		cmocka_unit_test(test_filters_of_lengths_have_no_fast_version),
		cmocka_unit_test(test_filters_of_far_bytes_have_no_fast_version),
	};

	test_eal_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
