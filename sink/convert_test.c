/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pcap/pcap.h>
#include <string.h>

#include "convert.h"
#include "base/test_util.h"

#define BLOCKS    5000u
#define BLOCK_LEN 96u /* the block of a packet of 61 bytes */

static struct ringtap_packets *it;

static int set_up(void **state)
{
	return ringtap_packets_create(&it);
}

static int tear_down(void **state)
{
	ringtap_packets_free(it);
	return 0;
}

static struct ringtap_run run_of(const uint8_t *epbs, uint64_t packets)
{
	return (struct ringtap_run){.size = sizeof(struct ringtap_run),
		.packets = packets,
		.bytes = packets * BLOCK_LEN,
		.records = epbs,
		.interface_count = 1};
}

static void libpcap_reads_converted_packets(void **state)
{
	uint8_t *epbs = malloc(BLOCKS * BLOCK_LEN), *out = malloc(BLOCKS * BLOCK_LEN + 24);
	struct ringtap_run run;
	struct test_pcap t;
	int64_t len;

	test_epbs(epbs, BLOCKS, 61, 7);
	pcap_file_header(out, 1234, 101);
	run = run_of(epbs, BLOCKS);
	len = pcap_convert(out + PCAP_FILE_HEADER, it, &run);
	assert_int_equal(len, BLOCKS * (16 + 61));
	test_folder_enter();
	test_write("p", out, (size_t)len + PCAP_FILE_HEADER);
	t = test_pcap_read("p");
	test_folder_leave();
	assert_int_equal(t.packets, BLOCKS);
	assert_int_equal(t.first, 7);
	assert_int_equal(t.gaps, 0);
	assert_int_equal(t.linktype, DLT_RAW);
	assert_int_equal(t.snaplen, 1234);
	assert_int_equal(t.first_ns, (UINT64_C(400000000) << 32) + 7);
	free(epbs);
	free(out);
}

static void broken_blocks_are_refused(void **state)
{
	uint8_t epbs[3 * BLOCK_LEN], out[3 * BLOCK_LEN];
	const uint32_t captured = 62 + 3;
	struct ringtap_run run;

	test_epbs(epbs, 3, 61, 0);
	memcpy(epbs + 2 * BLOCK_LEN + 20, &captured, 4);
	run = run_of(epbs, 3);
	assert_int_equal(pcap_convert(out, it, &run), -EBADMSG);
	run = run_of(epbs, 2);
	run.bytes -= 4;
	assert_int_equal(pcap_convert(out, it, &run), -EBADMSG);
	run = run_of(epbs, 2);
	assert_int_equal(pcap_convert(out, it, &run), 2 * 77);
}

static void fit_counts_what_conversion_makes(void **state)
{
	uint8_t epbs[10 * BLOCK_LEN];
	struct ringtap_run run = run_of(epbs, 10);

	test_epbs(epbs, 10, 61, 0);
	for (uint64_t max = 0; max < 11 * 77; max++) {
		uint64_t n = max / 77 < 10 ? max / 77 : 10;

		assert_int_equal(pcap_fit(it, &run, max), n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libpcap_reads_converted_packets),
		cmocka_unit_test(broken_blocks_are_refused),
		cmocka_unit_test(fit_counts_what_conversion_makes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
