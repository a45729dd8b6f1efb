/* SPDX-License-Identifier: BSD-3-Clause */
/* The truth is libpcap's own answer for the frame without its tags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/program.h"
#include "ringtap/open.h"

static pcap_t *dead;

static int setup(void **state)
{
	dead = pcap_open_dead(DLT_EN10MB, 65535);
	return dead ? 0 : -1;
}

static int teardown(void **state)
{
	pcap_close(dead);
	return 0;
}

struct frame {
	uint8_t data[96];
	uint32_t len;
};

static bool matches(struct bpf_program *prog, const struct frame *f)
{
	struct pcap_pkthdr h = {.caplen = f->len, .len = f->len};

	return pcap_offline_filter(prog, &h, f->data);
}

static struct frame frame(uint16_t type, const uint8_t *rest, uint32_t len)
{
	struct frame f = {.data = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, .len = 14 + len};

	f.data[12] = (uint8_t)(type >> 8);
	f.data[13] = (uint8_t)type;
	memcpy(f.data + 14, rest, len);
	return f;
}

static struct frame tagged(struct frame f, uint16_t tpid)
{
	memmove(f.data + 16, f.data + 12, f.len - 12);
	f.data[12] = (uint8_t)(tpid >> 8);
	f.data[13] = (uint8_t)tpid;
	f.data[14] = 0;
	f.data[15] = 5;
	f.len += 4;
	return f;
}

static const uint8_t udp53[] = {0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
	3, 0xe8, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4};
static const uint8_t tcp80[] = {0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 3, 10, 0, 0, 4,
	0, 80, 0x30, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 2, 0, 9, 0, 0, 0, 0};
static const uint8_t arp[28] = {0, 1, 8, 0, 6, 4, 0, 1};
static const uint8_t mpls[] = {
	0, 0, 0x11, 64, 0x45, 0, 0, 20, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
static const uint8_t ip6[40] = {0x60, 0, 0, 0, 0, 0, 59, 64, 0xfe, 0x80};

static const char *const expressions[] = {"udp port 53", "not udp port 53", "tcp", "host 10.0.0.1",
	"not host 10.0.0.1", "arp or tcp port 80", "ip6", "mpls", "mpls and ip", "ip[8] = 64",
	"tcp[tcpflags] & tcp-syn != 0", "ether src 02:00:00:00:00:01 and not arp",
	"not ip and not arp", "net 10.0.0.0/30", "ether[0] = 2", "ether[0] = 3"};

static void tagged_frames_match_as_untagged_ones(void **state)
{
	static const uint16_t tpids[] = {0x8100, 0x88a8, 0x9100};
	const struct frame frames[] = {frame(0x0800, udp53, sizeof(udp53)),
		frame(0x0800, tcp80, sizeof(tcp80)), frame(0x0806, arp, sizeof(arp)),
		frame(0x8847, mpls, sizeof(mpls)), frame(0x86dd, ip6, sizeof(ip6)),
		frame(0x1234, arp, 4), frame(0x1234, arp, 8)};
	unsigned found = 0;

	for (size_t e = 0; e < sizeof(expressions) / sizeof(expressions[0]); e++) {
		struct bpf_program plain, any;

		assert_int_equal(
			pcap_compile(dead, &plain, expressions[e], 1, PCAP_NETMASK_UNKNOWN), 0);
		assert_int_equal(ringtap_filter_compile(pcap_compile, RINGTAP_TAGS_ANY, dead, &any,
					 expressions[e], 1, PCAP_NETMASK_UNKNOWN),
			0);
		assert_true(rt_program_valid((const struct rt_insn *)any.bf_insns, any.bf_len));
		for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
			bool expected = matches(&plain, &frames[i]);

			found += expected;
			if (matches(&any, &frames[i]) != expected)
				fail_msg("'%s', frame %zu without a tag", expressions[e], i);
			for (unsigned k = 0; k < 3; k++) {
				struct frame one = tagged(frames[i], tpids[k]),
					     two = tagged(one, tpids[2 - k]);

				if (matches(&any, &one) != expected ||
					matches(&any, &two) != expected)
					fail_msg("'%s', frame %zu with tags", expressions[e], i);
			}
		}
		pcap_freecode(&plain);
		pcap_freecode(&any);
	}
	assert_true(found > 20);
}

static void assert_as_is(const char *expression, enum ringtap_tags tags, int optimize)
{
	struct bpf_program plain, any;

	assert_int_equal(pcap_compile(dead, &plain, expression, optimize, PCAP_NETMASK_UNKNOWN), 0);
	assert_int_equal(ringtap_filter_compile(pcap_compile, tags, dead, &any, expression,
				 optimize, PCAP_NETMASK_UNKNOWN),
		0);
	assert_int_equal(any.bf_len, plain.bf_len);
	assert_memory_equal(any.bf_insns, plain.bf_insns, plain.bf_len * sizeof(*plain.bf_insns));
	pcap_freecode(&plain);
	pcap_freecode(&any);
}

static void what_is_compiled_as_it_is(void **state)
{
	char longest[40000] = "host 10.0.0.1";

	assert_as_is("vlan", RINGTAP_TAGS_ANY, 1);
	assert_as_is("not vlan and udp", RINGTAP_TAGS_ANY, 1);
	assert_as_is("udp or vlan 5", RINGTAP_TAGS_ANY, 1);
	assert_as_is("ether proto 0x8100", RINGTAP_TAGS_ANY, 1);
	assert_as_is("ether[12:2] = 0x88a8", RINGTAP_TAGS_ANY, 1);
	assert_as_is("", RINGTAP_TAGS_ANY, 1);
	for (unsigned i = 0; i < 100; i++)
		sprintf(longest + strlen(longest), " or host 10.1.0.%u", i);
	assert_as_is(longest, RINGTAP_TAGS_ANY, 0);
}

static void libpcaps_meaning_is_its_program(void **state)
{
	for (size_t e = 0; e < sizeof(expressions) / sizeof(expressions[0]); e++)
		assert_as_is(expressions[e], RINGTAP_TAGS_AS_IS, 1);
}

static void mistakes_are_those_of_the_expression(void **state)
{
	struct bpf_program prog;

	assert_true(ringtap_filter_compile(pcap_compile, RINGTAP_TAGS_ANY, dead, &prog,
			    "udp) or (tcp", 1, PCAP_NETMASK_UNKNOWN) < 0);
	assert_non_null(strstr(pcap_geterr(dead), "syntax error"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tagged_frames_match_as_untagged_ones),
		cmocka_unit_test(what_is_compiled_as_it_is),
		cmocka_unit_test(libpcaps_meaning_is_its_program),
		cmocka_unit_test(mistakes_are_those_of_the_expression),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
