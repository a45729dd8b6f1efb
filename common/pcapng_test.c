/* SPDX-License-Identifier: BSD-3-Clause */
#include <pcap/pcap.h>
#include <stdio.h>

#include "base/test_util.h"
#include "pcapng.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static const struct rt_pcapng_shb shb = {
	.hardware = "x86_64", .os = "Linux 6.1", .application = "ringtap", .comment = "two\nlines"};
static const struct rt_pcapng_idb idb = {.name = "p0",
	.description = "port 0",
	.mac = mac,
	.speed_bits = 10000000000,
	.hardware = "net_null",
	.os = "os",
	.filter = "udp port 53",
	.snaplen = 96,
	.comment = "clock: timestamp=tsc"};
static const struct rt_pcapng_isb isb = {.time_ns = UINT64_C(1700000000123456789),
	.starttime_ns = UINT64_C(1700000000000000000),
	.endtime_ns = UINT64_C(1700000000123456789),
	.ifrecv = 10,
	.ifdrop = 1,
	.filteraccept = 9,
	.osdrop = 2,
	.usrdeliv = 7,
	.comment = {"NIC: imissed=1", "ended"}};

/* The three builders behind one type, so that each bound is tried on each. */
static ssize_t build(int which, void *buf, size_t size)
{
	if (which == 0)
		return rt_pcapng_shb(buf, size, &shb);
	if (which == 1)
		return rt_pcapng_idb(buf, size, &idb);
	return rt_pcapng_isb(buf, size, &isb);
}

static void blocks_are_whole_and_bounded(void **state)
{
	uint8_t buf[1024], guarded[1024];

	for (int which = 0; which < 3; which++) {
		ssize_t len = build(which, buf, sizeof(buf));
		uint32_t first, last;

		assert_true(len > 0 && len % 4 == 0);
		memcpy(&first, buf + 4, 4);
		memcpy(&last, buf + len - 4, 4);
		assert_int_equal(first, len);
		assert_int_equal(last, len);
		assert_int_equal(build(which, guarded, (size_t)len), len);
		assert_int_equal(build(which, NULL, 0), len);
		for (size_t size = 0; size < (size_t)len; size++) {
			memset(guarded, 0xa5, sizeof(guarded));
			assert_int_equal(build(which, guarded, size), len);
			for (size_t i = size; i < sizeof(guarded); i++)
				assert_int_equal(guarded[i], 0xa5);
		}
	}
	assert_true(build(2, buf, sizeof(buf)) <= RT_PCAPNG_ISB_MAX);
}

/* Finds the option in a block whose options begin at off. */
static const uint8_t *find(const uint8_t *block, size_t off, uint16_t code, uint16_t *len)
{
	for (;;) {
		uint16_t option[2];

		memcpy(option, block + off, 4);
		if (option[0] == code) {
			*len = option[1];
			return block + off + 4;
		}
		assert_int_not_equal(option[0], 0);
		off += 4 + ((option[1] + 3u) & ~3u);
	}
}

static void assert_text(const uint8_t *block, size_t off, uint16_t code, const char *text)
{
	uint16_t len;
	const uint8_t *v = find(block, off, code, &len);

	assert_int_equal(len, strlen(text));
	assert_memory_equal(v, text, len);
}

static void options_have_the_codes_of_the_draft(void **state)
{
	uint8_t buf[1024];
	uint16_t len;
	uint64_t v;

	rt_pcapng_shb(buf, sizeof(buf), &shb);
	assert_text(buf, 24, 1, "two\nlines");
	assert_text(buf, 24, 2, "x86_64");
	assert_text(buf, 24, 3, "Linux 6.1");
	assert_text(buf, 24, 4, "ringtap");
	rt_pcapng_idb(buf, sizeof(buf), &idb);
	assert_text(buf, 16, 1, "clock: timestamp=tsc");
	assert_text(buf, 16, 2, "p0");
	assert_text(buf, 16, 3, "port 0");
	assert_memory_equal(find(buf, 16, 6, &len), mac, 6);
	memcpy(&v, find(buf, 16, 8, &len), 8);
	assert_int_equal(v, 10000000000);
	assert_int_equal(*find(buf, 16, 9, &len), 9);
	assert_memory_equal(find(buf, 16, 11, &len), "\0udp port 53", 12);
	assert_int_equal(len, 12);
	assert_text(buf, 16, 12, "os");
	assert_text(buf, 16, 15, "net_null");
	rt_pcapng_isb(buf, sizeof(buf), &isb);
	assert_text(buf, 20, 1, "NIC: imissed=1");
	for (uint16_t code = 4; code <= 8; code++) {
		static const uint64_t expected[] = {10, 1, 9, 2, 7};

		memcpy(&v, find(buf, 20, code, &len), 8);
		assert_int_equal(v, expected[code - 4]);
	}
	memcpy(&v, find(buf, 20, 3, &len), 8);
	assert_int_equal(v >> 32 | v << 32, UINT64_C(1700000000123456789));
}

static void texts_have_limits(void **state)
{
	static char longest[RT_PCAPNG_TEXT_MAX + 2], buf[3 * RT_PCAPNG_TEXT_MAX];

	memset(longest, 'x', sizeof(longest) - 1);
	assert_int_equal(
		rt_pcapng_shb(buf, sizeof(buf), &(struct rt_pcapng_shb){.comment = longest}),
		-EMSGSIZE);
	assert_int_equal(
		rt_pcapng_idb(buf, sizeof(buf), &(struct rt_pcapng_idb){.filter = longest + 1}),
		-EMSGSIZE);
	assert_true(
		rt_pcapng_shb(buf, sizeof(buf), &(struct rt_pcapng_shb){.comment = longest + 1}) >
		(ssize_t)RT_PCAPNG_TEXT_MAX);
	assert_true(
		rt_pcapng_idb(buf, sizeof(buf), &(struct rt_pcapng_idb){.filter = longest + 2}) >
		(ssize_t)RT_PCAPNG_TEXT_MAX);
	assert_int_equal(rt_pcapng_isb(buf, RT_PCAPNG_ISB_MAX,
				 &(struct rt_pcapng_isb){
					 .comment = {longest, longest, longest, longest, longest}}),
		RT_PCAPNG_ISB_MAX);
}

static void fates_are_blocks_of_local_use(void **state)
{
	const struct rt_fates_packet e[2] = {{.id = 7, .interface = 1, .fate = RT_FATES_OPEN},
		{.id = 8, .ns_high = 1, .ns_low = 2, .queue = 3, .fate = RT_FATES_UNKNOWN}};
	const struct rt_fates_queue q = {.interface = 1, .received = 9};
	const uint64_t ns = UINT64_C(5) << 32 | 6;
	uint32_t buf[64];

	assert_int_equal(rt_pcapng_fates(buf, sizeof(buf), RT_FATES_PACKETS, ns, e, 2), 28 + 48);
	assert_int_equal(buf[0], 0x80525446);
	assert_int_equal(buf[1], 28 + 48);
	assert_int_equal(buf[2], RT_FATES_PACKETS | 24 << 16);
	assert_int_equal(buf[3], 2);
	assert_int_equal(buf[4], 5);
	assert_int_equal(buf[5], 6);
	assert_memory_equal(buf + 6, e, sizeof(e));
	assert_int_equal(buf[18], 28 + 48);
	assert_int_equal(rt_pcapng_fates(buf, sizeof(buf), RT_FATES_END, ns, &q, 1), 28 + 64);
	assert_int_equal(buf[2], RT_FATES_END | 64 << 16);
	assert_int_equal(buf[22], 28 + 64);
	assert_int_equal(rt_pcapng_fates(buf, sizeof(buf), RT_FATES_BEGIN, ns, NULL, 0), 28);
	assert_int_equal(buf[2], RT_FATES_BEGIN);
	assert_int_equal(buf[6], 28);
	/* Its length, where there is no room for it. */
	buf[2] = 0;
	assert_int_equal(rt_pcapng_fates(buf, 8, RT_FATES_PACKETS, ns, e, 2), 28 + 48);
	assert_int_equal(buf[2], 0);
}

static void libpcap_reads_it_back(void **state)
{
	static uint8_t buf[4096];
	char err[PCAP_ERRBUF_SIZE];
	size_t len = 0;
	struct pcap_pkthdr *h;
	const u_char *data;
	pcap_t *p;

	len += (size_t)rt_pcapng_shb(buf + len, sizeof(buf) - len, &shb);
	len += (size_t)rt_pcapng_idb(buf + len, sizeof(buf) - len, &idb);
	len += (size_t)rt_pcapng_fates(buf + len, sizeof(buf) - len, RT_FATES_BEGIN, 1, NULL, 0);
	len += test_epbs(buf + len, 3, 61, 1);
	len += (size_t)rt_pcapng_isb(buf + len, sizeof(buf) - len, &isb);
	p = pcap_fopen_offline_with_tstamp_precision(
		fmemopen(buf, len, "r"), PCAP_TSTAMP_PRECISION_NANO, err);
	assert_non_null(p);
	assert_int_equal(pcap_datalink(p), DLT_EN10MB);
	assert_int_equal(pcap_snapshot(p), 96);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(pcap_next_ex(p, &h, &data), 1);
		assert_int_equal(h->caplen, 61);
		assert_int_equal((uint64_t)h->ts.tv_sec * 1000000000 + (uint64_t)h->ts.tv_usec,
			(UINT64_C(400000000) << 32) + (uint64_t)i);
	}
	assert_int_equal(pcap_next_ex(p, &h, &data), PCAP_ERROR_BREAK);
	pcap_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_whole_and_bounded),
		cmocka_unit_test(options_have_the_codes_of_the_draft),
		cmocka_unit_test(texts_have_limits),
		cmocka_unit_test(fates_are_blocks_of_local_use),
		cmocka_unit_test(libpcap_reads_it_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
