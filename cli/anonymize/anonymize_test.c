/* SPDX-License-Identifier: BSD-3-Clause */
/* The command, on files that the tests make. */
#include <fcntl.h>
#include <lz4frame.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_command.h"
#include "base/test_util.h"
#include "cli/commands.h"

#define PAYLOAD "a-word-that-nobody-should-read"
#define PACKETS 5u

static const struct test_refusal refusals[] = {
	{"", 2, "no file is given"},
	{"a", 2, "add -w FILE"},
	{"a|b|-w|c", 2, "one file at a time"},
	{"a|-w|b|--payload|half", 2, "choose from cut|zero|keep"},
	{"a|-w|b", 1, "a: No such file or directory; check the name"},
};

/* IPv4 and UDP from 10.1.2.I. */
static size_t make_packet(uint8_t p[128], unsigned i)
{
	static const uint8_t headers[42] =
		"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0\x45\0\0\x3a\0\0\0\0\x40\x11\0\0"
		"\x0a\1\2\3\xc0\xa8\7\7\0\1\0\2\0\x26\0";

	memcpy(p, headers, sizeof(headers));
	p[29] = (uint8_t)i;
	memcpy(p + 42, PAYLOAD, strlen(PAYLOAD));
	return 42 + strlen(PAYLOAD);
}

static void make_pcap(const char *path, unsigned precision)
{
	pcap_t *p = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, precision);
	pcap_dumper_t *d = pcap_dump_open(p, path);

	assert_non_null(d);
	for (unsigned i = 0; i < PACKETS; i++) {
		uint8_t data[128];
		const size_t len = make_packet(data, i);
		const struct pcap_pkthdr h = {{1000 + i, 7 + i}, (uint32_t)len, (uint32_t)len + 3};

		pcap_dump((uint8_t *)d, &h, data);
	}
	pcap_dump_close(d);
	pcap_close(p);
}

/* Reads a file that is to have the packets of make_pcap(), cut behind UDP's header. */
static void check(const char *path, unsigned packets, unsigned scale)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	struct pcap_pkthdr *h;
	const uint8_t *data;
	unsigned i = 0;

	assert_non_null(p);
	for (; pcap_next_ex(p, &h, &data) == 1; i++) {
		uint8_t in[128];

		make_packet(in, i);
		assert_int_equal(h->ts.tv_sec, 1000 + i);
		assert_int_equal(h->ts.tv_usec, (7 + i) * scale);
		assert_int_equal(h->caplen, 42);
		assert_int_equal(h->len, 42 + strlen(PAYLOAD) + 3);
		assert_memory_equal(data + 12, in + 12, 12);
		assert_memory_not_equal(data, in, 6);
		assert_memory_not_equal(data + 26, in + 26, 4);
		assert_memory_equal(data + 34, in + 34, 6);
	}
	assert_int_equal(i, packets);
	pcap_close(p);
}

static struct test_output run(const char *args, int status)
{
	struct test_output o = test_command(&cmd_anonymize, args);

	assert_int_equal(o.status, status);
	return o;
}

static void pcap_of_both_precisions(void **state)
{
	struct test_output o;
	struct stat st;

	make_pcap("us", PCAP_TSTAMP_PRECISION_MICRO);
	make_pcap("ns", PCAP_TSTAMP_PRECISION_NANO);
	o = run("us|-w|out", 0);
	assert_string_equal(o.err, "5 packets\n");
	test_output_free(&o);
	check("out", PACKETS, 1000);
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	o = run("ns|-q|-g|-w|out", 0);
	assert_string_equal(o.err, "");
	test_output_free(&o);
	check("out", PACKETS, 1);
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void compressed(void **state)
{
	size_t len, room;
	struct test_output o;
	uint8_t *data, *packed;

	make_pcap("ns", PCAP_TSTAMP_PRECISION_NANO);
	data = test_read("ns", &len);
	room = LZ4F_compressFrameBound(len, NULL);
	packed = malloc(room);
	room = LZ4F_compressFrame(packed, room, data, len, NULL);
	test_write("packed", packed, room);
	o = run("packed|-q|-w|out", 0);
	test_output_free(&o);
	check("out", PACKETS, 1);
	/* Damaged: its packets before that stay. */
	test_write("packed", packed, room - 9);
	o = run("packed|-q|-w|out", 1);
	assert_non_null(strstr(o.err, "the compressed data is damaged"));
	test_output_free(&o);
	free(packed);
	free(data);
}

static void one_key_for_two_files(void **state)
{
	uint8_t *a, *b, *other;
	struct test_output o;
	size_t len, again;

	make_pcap("ns", PCAP_TSTAMP_PRECISION_NANO);
	o = run("ns|-q|-w|a|--key|k", 0);
	test_output_free(&o);
	o = run("ns|-q|-w|b|--key|k", 0);
	test_output_free(&o);
	o = run("ns|-q|-w|other", 0);
	test_output_free(&o);
	a = test_read("a", &len);
	b = test_read("b", &again);
	other = test_read("other", &again);
	assert_memory_equal(a, b, len);
	assert_memory_not_equal(a, other, len);
	free(a);
	free(b);
	free(other);
}

static void payload(void **state)
{
	struct test_output o;
	uint8_t *data;
	size_t len;

	make_pcap("ns", PCAP_TSTAMP_PRECISION_NANO);
	for (unsigned keep = 0; keep < 2; keep++) {
		o = run(keep ? "ns|-q|-w|out|--payload|keep" : "ns|-q|-w|out|--payload|zero", 0);
		test_output_free(&o);
		data = test_read("out", &len);
		assert_int_equal(len, 24 + PACKETS * (16 + 42 + strlen(PAYLOAD)));
		assert_int_equal(memmem(data, len, PAYLOAD, strlen(PAYLOAD)) != NULL, keep);
		free(data);
	}
}

static void damaged(void **state)
{
	struct test_output o;
	uint8_t *data;
	size_t len;

	make_pcap("ns", PCAP_TSTAMP_PRECISION_NANO);
	data = test_read("ns", &len);
	test_write("cut", data, len - 5);
	o = run("cut|-w|out", 1);
	assert_non_null(strstr(o.err, "truncated"));
	assert_non_null(strstr(o.err, "; the 4 packets before that are written\n4 packets\n"));
	test_output_free(&o);
	check("out", PACKETS - 1, 1);
	test_write("cut", "GIF89a..................", 24);
	o = run("cut|-w|none", 1);
	assert_non_null(strstr(o.err, "anonymize: cut: not a recording (unknown file format), no "
				      "packet is written; give a file in pcap or pcapng\n"));
	assert_null(strstr(o.err, "0 packets"));
	assert_int_equal(access("none", F_OK), -1);
	test_output_free(&o);
	test_write("cut", "", 0);
	o = run("cut|-w|none", 1);
	assert_non_null(strstr(o.err, "it is empty; no packet is written"));
	assert_int_equal(access("none", F_OK), -1);
	test_output_free(&o);
	/* A header, and damage before the first packet. */
	test_write("cut", data, 24 + 5);
	o = run("cut|-w|none", 1);
	assert_non_null(strstr(o.err, "; no packet is written\n"));
	assert_int_equal(access("none", F_OK), -1);
	test_output_free(&o);
	/* Itself. */
	o = run("ns|-w|ns", 2);
	assert_non_null(strstr(o.err, "that is the recording itself"));
	test_output_free(&o);
	free(data);
}

/* A file that was removed has no packets. */
static void a_full_disk(void **state)
{
	struct rlimit before, low;
	struct test_output o;

	make_pcap("ns", PCAP_TSTAMP_PRECISION_NANO);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = before;
	low.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	o = run("ns|-w|out", 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_null(strstr(o.err, "packets"));
	assert_non_null(
		strstr(o.err, "out: File too large; the file is incomplete and was removed"));
	assert_int_equal(access("out", F_OK), -1);
	test_output_free(&o);
}

static void other_link_types(void **state)
{
	struct test_output o;
	uint8_t *data;
	size_t len;

	make_pcap("ns", PCAP_TSTAMP_PRECISION_NANO);
	data = test_read("ns", &len);
	data[20] = 127; /* radiotap */
	test_write("ns", data, len);
	free(data);
	o = run("ns|-w|out", 0);
	assert_non_null(strstr(o.err, "5 packets have a link type that is not read"));
	test_output_free(&o);
	data = test_read("out", &len);
	assert_int_equal(len, 24 + PACKETS * 16);
	assert_int_equal(data[20], 127);
	free(data);
}

static int setup(void **state)
{
	test_folder_enter();
	return 0;
}

static int teardown(void **state)
{
	test_folder_leave();
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(pcap_of_both_precisions), TEST(compressed),
		TEST(one_key_for_two_files), TEST(payload), TEST(damaged), TEST(a_full_disk),
		TEST(other_link_types)};

	return test_refusals(&cmd_anonymize, refusals, sizeof(refusals) / sizeof(refusals[0])) +
	       cmocka_run_group_tests(tests, NULL, NULL);
}
