/* SPDX-License-Identifier: BSD-3-Clause */
/* The expression of an entry matches its packets, and no others: libpcap runs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "view.h"

struct frame {
	uint8_t p[128];
	uint32_t len;
};

static void put(struct frame *f, const void *bytes, uint32_t n)
{
	memcpy(f->p + f->len, bytes, n);
	f->len += n;
}

/* tags: of VLAN 5, then 6. */
static struct frame ether(unsigned tags, uint16_t type)
{
	static const uint8_t macs[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	const uint8_t end[] = {(uint8_t)(type >> 8), (uint8_t)type};
	struct frame f = {.len = 0};

	put(&f, macs, sizeof(macs));
	for (unsigned i = 0; i < tags; i++)
		put(&f, (uint8_t[]){0x81, 0, 0, (uint8_t)(5 + i)}, 4);
	put(&f, end, sizeof(end));
	return f;
}

static struct frame ipv4(unsigned tags, uint8_t protocol, uint8_t from, uint16_t fragment)
{
	struct frame f = ether(tags, 0x0800);
	const uint8_t head[] = {0x45, 46 << 2, 0, 40, 0, 0, (uint8_t)(fragment >> 8),
		(uint8_t)fragment, 64, protocol, 0, 0, 10, 0, 0, from, 192, 0, 2, 1};

	put(&f, head, sizeof(head));
	put(&f, (uint8_t[20]){0x10, 0x92, 0, 53, [12] = 0x50}, 20);
	return f;
}

static struct frame ipv6(uint8_t protocol, uint8_t from)
{
	struct frame f = ether(0, 0x86dd);
	const uint8_t head[40] = {0x60, 0, 0, 0, 0, 20, protocol, 64, 0x20, 1, 0xd,
		0xb8, [23] = from, [24] = 0x20, 1, 0xd, 0xb8, [39] = 9};

	put(&f, head, sizeof(head));
	put(&f, (uint8_t[20]){0x10, 0x92, 0, 53, [12] = 0x50}, 20);
	return f;
}

static struct frame arp(void)
{
	static const uint8_t body[28] = {
		0, 1, 8, 0, 6, 4, 0, 1, [14] = 10, 0, 0, 1, [24] = 10, 0, 0, 9};
	struct frame f = ether(0, 0x0806);

	put(&f, body, sizeof(body));
	return f;
}

static bool matches(pcap_t *dead, const char *expression, const struct frame *f)
{
	const struct pcap_pkthdr head = {.caplen = f->len, .len = f->len};
	struct bpf_program program;
	int hit;

	if (pcap_compile(dead, &program, expression, 1, PCAP_NETMASK_UNKNOWN))
		fail_msg("%s: %s", expression, pcap_geterr(dead));
	hit = pcap_offline_filter(&program, &head, f->p);
	pcap_freecode(&program);
	return hit;
}

enum { FRAMES = 15 };
static void make_frames(struct frame f[FRAMES])
{
	const struct frame made[FRAMES] = {ipv4(0, 17, 1, 0), ipv4(0, 17, 2, 0), ipv4(0, 6, 1, 0),
		ipv4(0, 132, 1, 0), ipv4(1, 17, 1, 0), ipv4(2, 17, 1, 0), ipv4(2, 6, 1, 0),
		ipv4(0, 17, 1, 5), ipv4(0, 47, 1, 0), ipv6(17, 1), ipv6(6, 1), ipv6(58, 1), arp(),
		ether(0, 0x88cc), ether(1, 0x88cc)};

	memcpy(f, made, sizeof(made));
}

/* As every frame is alone in its 5-tuple, an expression matches one frame; of other views those of
 * its entry. */
static void expressions_match_their_packets_only(void **state)
{
	static const enum ledger_view views[] = {LEDGER_5_TUPLE, LEDGER_HOST, LEDGER_PAIR,
		LEDGER_PORT, LEDGER_PROTOCOL, LEDGER_VLAN, LEDGER_DSCP, LEDGER_MAC};
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, 65535);
	struct frame f[FRAMES];

	make_frames(f);
	for (size_t v = 0; v < sizeof(views) / sizeof(views[0]); v++) {
		struct ledger t;

		assert_int_equal(ledger_init(&t, views[v], 100, false), 0);
		for (int i = 0; i < FRAMES; i++) {
			struct ringtap_packet p = {.data = f[i].p, .caplen = f[i].len};

			ledger_add(&t, &p, LINKTYPE_ETHERNET);
		}
		for (uint32_t e = 0; e < t.table.count; e++) {
			const struct ledger_flow *flow = flow_table_at(&t.table, e);
			char *expression = ledger_expression(&t, &flow->key);

			assert_non_null(expression);
			for (int i = 0; i < FRAMES; i++) {
				struct ringtap_packet p = {.data = f[i].p, .caplen = f[i].len};
				bool of = ledger_belongs(&t, &p, LINKTYPE_ETHERNET, &flow->key);
				/* libpcap's primitives read no tag unless it is named. */
				bool tagged = f[i].p[12] == 0x81 && views[v] != LEDGER_5_TUPLE &&
					      views[v] != LEDGER_MAC && views[v] != LEDGER_VLAN;

				if (!tagged && matches(dead, expression, &f[i]) != of)
					fail_msg("%s: frame %d", expression, i);
			}
			free(expression);
		}
		ledger_free(&t);
	}
	pcap_close(dead);
}

static void other_entries_have_none(void **state)
{
	static const enum ledger_view views[] = {
		LEDGER_QUEUE, LEDGER_THREAD, LEDGER_VNI, LEDGER_INNER, LEDGER_5_TUPLE, LEDGER_PORT};

	for (size_t v = 0; v < sizeof(views) / sizeof(views[0]); v++) {
		const struct ledger t = {.view = views[v]};
		const struct flow_key unreadable = {.flags = 0};

		assert_null(ledger_expression(&t, &unreadable));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_match_their_packets_only),
		cmocka_unit_test(other_entries_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
