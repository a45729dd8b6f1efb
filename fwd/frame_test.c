/* SPDX-License-Identifier: BSD-3-Clause */
#include <pcap/pcap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "frame.h"
#include "smaps.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};

static void stamps_survive(void **state)
{
	uint8_t frame[FRAME_MIN] = {0};
	const struct stamp all = {.number = STAMP_NUMBERS - 1, .stream = 255, .tsc = UINT64_MAX};
	struct stamp got;

	stamp_write(frame, &all);
	assert_memory_equal(frame + 42, "RTfw\xff\xff\xff\xff\xff\xff", 10);
	assert_true(stamp_read(frame, sizeof(frame), &got));
	assert_int_equal(got.number, all.number);
	assert_int_equal(got.stream, 255);
	assert_int_equal(got.tsc, UINT64_MAX);
	stamp_write(frame, &(struct stamp){.number = 0x0102030405, .stream = 6, .tsc = 7});
	assert_memory_equal(frame + 42, "RTfw\x06\x01\x02\x03\x04\x05\0\0\0\0\0\0\0\x07", 18);
	assert_false(stamp_read(frame, FRAME_MIN - 1, &got));
	frame[42] = 'r';
	assert_false(stamp_read(frame, sizeof(frame), &got));
	assert_int_equal(frame[41], 0);
}

static uint32_t sum16(const uint8_t *p, unsigned len)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return (sum & 0xffff) + (sum >> 16);
}

static void built_frames(void **state)
{
	struct fwd_config c;
	struct frames f;

	config_init(&c);
	assert_int_equal(frames_make(&f, &c, mac), 0);
	assert_int_equal(f.count, 1);
	assert_memory_equal(f.data, "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x09\x08\x06", 14);
	assert_int_equal(f.at[0].len, 60);
	frames_free(&f);
	c.frame = FRAME_UDP;
	c.sizes[0] = 61;
	c.sizes[1] = 1514;
	c.size_count = 2;
	assert_int_equal(frames_make(&f, &c, mac), 0);
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *p = f.data + f.at[i].offset;

		assert_int_equal(f.at[i].len, c.sizes[i]);
		assert_int_equal(p[16] << 8 | p[17], c.sizes[i] - 14); /* IP length */
		assert_int_equal(p[38] << 8 | p[39], c.sizes[i] - 34); /* UDP length */
		assert_int_equal(sum16(p + 14, 20), 0xffff);
	}
	frames_free(&f);
}

static void frames_of_a_file(void **state)
{
	char path[] = "fwd-frames-XXXXXX";
	int fd = mkstemp(path);
	pcap_t *p = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *d = pcap_dump_fopen(p, fdopen(fd, "w"));
	uint8_t data[200] = {0};
	struct fwd_config c;
	struct frames f;

	for (unsigned i = 0; i < 3000; i++) {
		struct pcap_pkthdr h = {.caplen = 14 + i % 100, .len = 14 + i % 100};

		/* 1 ms apart; one is earlier than those before. */
		h.ts = (struct timeval){.tv_sec = 1000 + i / 1000, .tv_usec = i % 1000 * 1000};
		if (i == 7)
			h.ts.tv_sec = 999;

		data[0] = (uint8_t)i;
		pcap_dump((u_char *)d, &h, data);
	}
	pcap_dump_close(d);
	pcap_close(p);
	config_init(&c);
	c.pcap = path;
	assert_int_equal(frames_make(&f, &c, mac), 0);
	assert_int_equal(f.count, 3000);
	assert_false(f.stamped);
	assert_null(f.due_ns);
	for (unsigned i = 0; i < 3000; i++) {
		assert_int_equal(f.at[i].len, 14 + i % 100);
		assert_int_equal(f.data[f.at[i].offset], (uint8_t)i);
	}
	frames_free(&f);
	c.timing = true;
	assert_int_equal(frames_make(&f, &c, mac), 0);
	assert_int_equal(f.count, 3000);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(f.due_ns[i], (i == 7 ? 6 : i) * UINT64_C(1000000));
	frames_free(&f);
	c.buffer_size = 128 + 100;
	assert_true(frames_make(&f, &c, mac) < 0);
	assert_int_equal(truncate(path, 24), 0);
	assert_true(frames_make(&f, &c, mac) < 0); /* no frames */
	unlink(path);
	assert_true(frames_make(&f, &c, mac) < 0);
}

static void smaps_of_a_piece(void **state)
{
	static char text[] = "1000-3000 rw-p 00000000 00:00 0 \n"
			     "Size:                  8 kB\nKernelPageSize:        4 kB\n"
			     "Rss:                   4 kB\nAnonHugePages:         0 kB\n"
			     "200000-600000 rw-p 00000000 00:00 0   [anon:x]\n"
			     "Size:               4096 kB\nKernelPageSize:     2048 kB\n"
			     "Rss:                4096 kB\nAnonHugePages:      2048 kB\n"
			     "Private_Hugetlb:    1024 kB\nShared_Hugetlb:        1 kB\n"
			     "VmFlags: rd wr mr mw me ac \n"
			     "600000-700000 rw-p 00000000 00:00 0 \n"
			     "Size:               1024 kB\nRss:                1024 kB\n";
	FILE *f = fmemopen(text, sizeof(text) - 1, "r");
	struct smaps s;

	assert_int_equal(smaps_read(f, 0x2fff, 0x200000, &s), 0);
	assert_int_equal(s.mappings, 2);
	assert_int_equal(s.page_kb, 4);
	rewind(f);
	assert_int_equal(smaps_read(f, 0x200000, 0x400000, &s), 0);
	assert_int_equal(s.mappings, 1);
	assert_int_equal(s.size_kb, 4096);
	assert_int_equal(s.rss_kb, 4096);
	assert_int_equal(s.anon_huge_kb, 2048);
	assert_int_equal(s.hugetlb_kb, 1025);
	assert_int_equal(s.page_kb, 2048);
	rewind(f);
	assert_true(smaps_read(f, 0x800000, 0x1000, &s) < 0);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamps_survive),
		cmocka_unit_test(built_frames),
		cmocka_unit_test(frames_of_a_file),
		cmocka_unit_test(smaps_of_a_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
