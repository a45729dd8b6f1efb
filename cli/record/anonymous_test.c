/* SPDX-License-Identifier: BSD-3-Clause */
/* record --anonymize, with packets of a fake reader: frames of unknown types. */
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/test_command.h"
#include "common/pcapng.h"
#include "test_record.h"

#define KNOWN (14u + 8u) /* bytes of the longest headers: Ethernet, LLC and SNAP */

/* Zeros behind the headers, and nothing in a file with the payload cut off. Returns packets. */
static unsigned check_packets(const char *path, bool cut)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline(path, err);
	struct pcap_pkthdr *h;
	const uint8_t *data;
	unsigned n = 0;

	assert_non_null(p);
	for (; pcap_next_ex(p, &h, &data) == 1; n++) {
		assert_true(cut ? h->caplen <= KNOWN : h->caplen > KNOWN);
		for (uint32_t i = KNOWN; i < h->caplen; i++)
			assert_int_equal(data[i], 0);
	}
	pcap_close(p);
	return n;
}

static void as_many_packets_and_blocks(void **state)
{
	static const struct {
		const char *line;
		bool cut, pcap;
	} cases[] = {{"-q -w f --anonymize", true, false},
		{"-q -w f --anonymize --payload zero", false, false},
		{"-q -w f -P --anonymize", true, true},
		{"-q -w f -P --anonymize --payload zero", false, true}};
	struct test_blocks plain, b;

	assert_int_equal(record("-q -w f"), 0);
	plain = test_blocks_read("f");
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(record(cases[i].line), 0);
		assert_int_equal(check_packets("f", cases[i].cut), TOTAL);
		if (cases[i].pcap)
			continue;
		b = test_blocks_read("f");
		assert_int_equal(b.epb, TOTAL);
		assert_int_equal(b.idb, plain.idb);
		assert_int_equal(b.isb, plain.isb);
		assert_memory_equal(b.packets_of, plain.packets_of, sizeof(b.packets_of));
		assert_memory_equal(b.ended, plain.ended, sizeof(b.ended));
		assert_int_equal(b.stat_of[0][8], PORT0);
	}
}

/* Each has its section and interfaces. */
static void several_files(void **state)
{
	static const char *const lines[] = {"-q -w c.pcapng --anonymize -b packets:100",
		"-q -w c.pcapng --anonymize -b filesize:5",
		"-q -w c.pcapng --anonymize --payload zero --split interface"};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		unsigned packets = 0;
		size_t count;
		char **files;

		assert_int_equal(record(lines[i]), 0);
		files = names("c_*.pcapng", &count);
		assert_true(count > 1);
		for (size_t k = 0; k < count; k++) {
			packets += check_packets(files[k], i < 2);
			assert_int_equal(test_blocks_read(files[k]).shb, 1);
			remove(files[k]);
		}
		assert_int_equal(packets, TOTAL);
	}
}

/* Without names or comments, also those that come by --cut. */
static void no_texts(void **state)
{
	static const char *const texts[] = {"udp", "app", "cut:", "clock", "ended by", "net_"};
	uint8_t *data;
	size_t len;

	assert_int_equal(record("-q -w f -f udp --cut 64:udp"), 0);
	data = test_read("f", &len);
	assert_non_null(memmem(data, len, "cut: 64:udp", 11));
	free(data);
	assert_int_equal(record("-q -w f -f udp --cut 64:udp --anonymize"), 0);
	data = test_read("f", &len);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_null(memmem(data, len, texts[i], strlen(texts[i])));
	assert_non_null(memmem(data, len, "interface0", 10));
	free(data);
}

static void a_key_that_others_can_read(void **state)
{
	test_write("key", "x", 1);
	chmod("key", 0644);
	assert_int_equal(record("-q -w f --anonymize --key key"), STATUS_FAILED);
	test_assert_has(message_last(), "record: --key: key: it is another user's");
	assert_int_not_equal(access("f", F_OK), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(as_many_packets_and_blocks), TEST(several_files),
		TEST(no_texts), TEST(a_key_that_others_can_read)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
