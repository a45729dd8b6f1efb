/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "archive.h"
#include "common/pcapng.h"
#include "rows.h"
#include "spill.h"

#define HOUR_NS 3600000000000u

/* UDP from 10.0.0.1, port 1, to 10.0.0.2, port 2. */
static const uint8_t udp[44] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 30, 0, 7, 0,
	0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 10, 0, 0, 'h', 'i'};

struct file {
	uint8_t data[1 << 16];
	size_t len;
};

static void begin(struct file *f)
{
	f->len = (size_t)rt_pcapng_shb(f->data, sizeof(f->data), &(struct rt_pcapng_shb){0});
	f->len += (size_t)rt_pcapng_idb(f->data + f->len, sizeof(f->data) - f->len,
		&(struct rt_pcapng_idb){.name = "alpha",
			.description = "port 3 of DPDK application app, net_ring0"});
}

static void put_packet(struct file *f, uint64_t ns, uint32_t captured)
{
	uint32_t total = 32 + ((captured + 3) & ~3u);
	uint32_t head[7] = {6, total, 0, (uint32_t)(ns >> 32), (uint32_t)ns, captured, sizeof(udp)};

	memcpy(f->data + f->len, head, sizeof(head));
	memset(f->data + f->len + sizeof(head), 0, total - sizeof(head));
	memcpy(f->data + f->len + sizeof(head), udp, captured);
	memcpy(f->data + f->len + total - 4, &total, sizeof(total));
	f->len += total;
}

static struct rt_archive *open_file(const struct file *f)
{
	struct rt_archive *a;

	assert_int_equal(rt_archive_memory(&a, f->data, f->len, 0), 0);
	return a;
}

static struct ArrowArrayStream next_packets(struct rt_archive *a)
{
	struct ArrowArrayStream s;

	assert_int_equal(rt_archive_part_next(a), 1);
	assert_int_equal(rt_archive_part_packets(a, &s), 0);
	return s;
}

static bool has(const struct ArrowArray *b, int column, int row)
{
	const uint8_t *bits = b->children[column]->buffers[0];

	return !bits || bits[row / 8] >> row % 8 & 1;
}

static void columns_are_those_of_the_packets(void **state)
{
	struct file f;
	struct rt_archive *a;
	struct ArrowArrayStream s;
	struct ArrowArray b;

	begin(&f);
	put_packet(&f, 5, sizeof(udp));
	put_packet(&f, 6, 30); /* in the middle of the IP header */
	a = open_file(&f);
	s = next_packets(a);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_non_null(b.release);
	assert_int_equal(b.length, 2);
	assert_int_equal(((const int64_t *)b.children[COL_TIME]->buffers[1])[1], 6);
	assert_int_equal(((const uint16_t *)b.children[COL_DST_PORT]->buffers[1])[0], 2);
	assert_memory_equal(
		(const uint8_t *)b.children[COL_SRC]->buffers[1] + 10, "\xff\xff\x0a\0\0\1", 6);
	assert_true(has(&b, COL_FLOW_ID, 0) && has(&b, COL_DIGEST, 0) && has(&b, COL_ETHERTYPE, 1));
	assert_false(has(&b, COL_SRC, 1) || has(&b, COL_FLOW_ID, 1) || has(&b, COL_DIRECTION, 0));
	assert_int_equal(b.children[COL_SRC]->null_count, 1);
	assert_int_equal(b.children[COL_TIME]->null_count, 0);
	b.release(&b);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_null(b.release);
	s.release(&s);
	assert_int_equal(rt_archive_part_next(a), 0);
	rt_archive_close(a);
}

/* The Arrow C data interface lets consumers do so. */
static void arrays_may_be_moved_out_and_outlive_all_else(void **state)
{
	struct file f;
	struct rt_archive *a;
	struct ArrowArrayStream s;
	struct ArrowSchema schema;
	struct ArrowArray b, port, direction;

	begin(&f);
	put_packet(&f, 5, sizeof(udp));
	a = open_file(&f);
	s = next_packets(a);
	assert_int_equal(s.get_schema(&s, &schema), 0);
	assert_int_equal(schema.n_children, COLUMNS);
	assert_string_equal(schema.children[COL_DIRECTION]->dictionary->format, "u");
	schema.release(&schema);
	assert_null(schema.release);
	assert_int_equal(s.get_next(&s, &b), 0);
	port = *b.children[COL_SRC_PORT];
	b.children[COL_SRC_PORT]->release = NULL;
	direction = *b.children[COL_DIRECTION];
	b.children[COL_DIRECTION]->release = NULL;
	b.release(&b);
	rt_archive_close(a);
	assert_int_equal(s.get_next(&s, &b), 0); /* also the stream outlives the decoder */
	assert_null(b.release);
	s.release(&s);
	assert_int_equal(((const uint16_t *)port.buffers[1])[0], 1);
	assert_memory_equal(direction.dictionary->buffers[2], "rxtx", 4);
	direction.release(&direction);
	port.release(&port);
}

static void parts_are_read_in_order_and_once(void **state)
{
	struct file f;
	struct rt_archive *a;
	struct ArrowArrayStream s;
	struct ArrowArray b;
	uint64_t from, to, middle;
	size_t len;

	begin(&f);
	put_packet(&f, 1, sizeof(udp));
	middle = f.len;
	put_packet(&f, HOUR_NS, sizeof(udp));
	a = open_file(&f);
	s = next_packets(a);
	assert_int_equal(rt_archive_part_next(a), -EBUSY);
	assert_int_equal(rt_archive_part_flows(a, &s), -EBUSY);
	for (b.release = NULL; !s.get_next(&s, &b) && b.release;)
		b.release(&b);
	rt_archive_part_range(a, &from, &to);
	assert_true(from == 0 && to == middle);
	rt_archive_part_header(a, &len);
	assert_int_equal(len, 0);
	s.release(&s);
	s = next_packets(a);
	rt_archive_part_header(a, &len);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_int_equal(((const int64_t *)b.children[COL_FILE_OFFSET]->buffers[1])[0], len);
	b.release(&b);
	assert_int_equal(s.get_next(&s, &b), 0);
	rt_archive_part_range(a, &from, &to);
	assert_true(from == middle && to == f.len);
	s.release(&s);
	assert_int_equal(rt_archive_part_packets(a, &s), -EBUSY);
	rt_archive_close(a);
}

static void flows_count_what_was_merged_from_the_temporary_file(void **state)
{
	struct file f;
	struct rt_archive *a;
	struct ArrowArrayStream s;
	struct ArrowArray b;

	begin(&f);
	for (unsigned i = 0; i < 60; i++) {
		put_packet(&f, i, sizeof(udp));
		f.data[f.len - 4 - sizeof(udp) + 35] = (uint8_t)(i % 7); /* the source port */
	}
	a = open_file(&f);
	a->flows->max = 3;
	s = next_packets(a);
	while (!s.get_next(&s, &b) && b.release)
		b.release(&b);
	s.release(&s);
	assert_non_null(a->flows->spill);
	assert_int_equal(rt_archive_part_flows(a, &s), 0);
	assert_int_equal(rt_archive_part_next(a), -EBUSY);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_int_equal(b.length, 7);
	for (int i = 0; i < 7; i++)
		assert_in_range(((const int64_t *)b.children[8]->buffers[1])[i], 8, 9);
	b.release(&b);
	s.release(&s);
	rt_archive_close(a);
}

/* From and to port 2 of the hosts 10.0.0.src and 10.0.0.dst. */
static void put_udp(struct file *f, unsigned src, unsigned dst, uint64_t ns)
{
	uint8_t *p;

	put_packet(f, ns, sizeof(udp));
	p = f->data + f->len - 4 - sizeof(udp);
	p[29] = (uint8_t)src;
	p[33] = (uint8_t)dst;
	p[35] = 2;
}

static int64_t packets_of_flows(struct rt_archive *a)
{
	struct ArrowArrayStream s;
	struct ArrowArray b;
	int64_t n = 0;

	assert_int_equal(rt_archive_part_flows(a, &s), 0);
	assert_int_equal(s.get_next(&s, &b), 0);
	for (int64_t i = 0; i < b.length; i++) {
		assert_int_equal(((const uint8_t *)b.children[1]->buffers[1])[16 * i + 15], 9);
		n += ((const int64_t *)b.children[8]->buffers[1])[i] * 100 +
		     ((const int64_t *)b.children[9]->buffers[1])[i];
	}
	b.release(&b);
	s.release(&s);
	return n;
}

/* The host 9 begins each of five flows. A flow's rows are together: all that one end sent, in file
 * order, and then all that the other end sent. */
static void rows_by_flow_are_in_runs(void **state)
{
	struct file f;
	struct rt_archive *a;
	struct ArrowArrayStream s;
	struct ArrowArray b;
	const int64_t *id, *ns;
	const uint8_t *src;
	unsigned runs = 1, turns = 0;

	begin(&f);
	for (unsigned i = 0; i < 90; i++)
		put_udp(&f, i % 6 < 5 ? 9 : 10 + i / 6 % 5, i % 6 < 5 ? 10 + i % 5 : 9, i);
	put_packet(&f, 90, 20); /* belongs to no flow */
	assert_int_equal(rt_archive_memory(&a, f.data, f.len, RT_ARCHIVE_BY_FLOW), 0);
	s = next_packets(a);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_int_equal(b.length, 91);
	assert_false(has(&b, COL_FLOW_ID, 0));
	id = b.children[COL_FLOW_ID]->buffers[1];
	ns = b.children[COL_TIME]->buffers[1];
	src = b.children[COL_SRC]->buffers[1];
	assert_int_equal(ns[0], 90);
	for (int i = 2; i < 91; i++) {
		bool same = id[i] == id[i - 1], turn = src[16 * i + 15] != src[16 * i - 1];

		assert_true(id[i] >= id[i - 1]);
		assert_true(!same || turn || ns[i] > ns[i - 1]);
		runs += !same;
		turns += same && turn;
	}
	assert_int_equal(runs, 5);
	assert_int_equal(turns, 5);
	b.release(&b);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_null(b.release);
	s.release(&s);
	assert_int_equal(packets_of_flows(a), 75 * 100 + 15);
	rt_archive_close(a);
}

/* ---- what lies behind a part ---- */

static void put_block(struct file *f, uint32_t type, const void *body, uint32_t len)
{
	uint32_t head[2] = {type, len + 12};

	memcpy(f->data + f->len, head, sizeof(head));
	memcpy(f->data + f->len + sizeof(head), body, len);
	memcpy(f->data + f->len + sizeof(head) + len, &head[1], 4);
	f->len += len + 12;
}

/* A recording that began at this time. */
static void begin_fates(struct file *f, uint32_t begun)
{
	begin(f);
	put_block(f, RT_PCAPNG_FATES, (uint32_t[4]){RT_FATES_BEGIN, 0, 0, begun}, 16);
}

static void put_id(struct file *f, uint64_t ns, uint32_t direction, uint32_t id)
{
	uint32_t body[5 + sizeof(udp) / 4 + 6] = {
		0, (uint32_t)(ns >> 32), (uint32_t)ns, sizeof(udp), sizeof(udp)};
	const uint32_t options[6] = {2 | 4 << 16, direction, 5 | 8 << 16, id, 0, 0};

	memcpy(body + 5, udp, sizeof(udp));
	memcpy(body + 5 + sizeof(udp) / 4, options, sizeof(options));
	put_block(f, 6, body, sizeof(body));
}

static void put_fate(struct file *f, uint32_t id, uint8_t fate)
{
	const uint32_t body[4 + 6] = {RT_FATES_PACKETS | sizeof(struct rt_fates_packet) << 16, 1, 0,
		0, id, 0, 0, 0, 0, (uint32_t)fate << 16};

	put_block(f, RT_PCAPNG_FATES, body, sizeof(body));
}

/* Compares offered, not offered and open packets of the one flow. later: what
 * rt_archive_part_later() returns. */
static void assert_fates(
	const struct file *f, int fd, int later, int64_t offered, int64_t not_offered, int64_t open)
{
	struct rt_archive *a = open_file(f);
	struct ArrowArrayStream s = next_packets(a);
	struct ArrowArray b;

	assert_int_equal(rt_archive_part_later(a, fd), -EBUSY);
	while (!s.get_next(&s, &b) && b.release)
		b.release(&b);
	s.release(&s);
	assert_int_equal(rt_archive_part_later(a, fd), later);
	assert_int_equal(rt_archive_part_flows(a, &s), 0);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_int_equal(((const int64_t *)b.children[17]->buffers[1])[0], offered);
	assert_int_equal(((const int64_t *)b.children[18]->buffers[1])[0], not_offered);
	assert_int_equal(((const int64_t *)b.children[19]->buffers[1])[0], open);
	b.release(&b);
	s.release(&s);
	rt_archive_close(a);
}

static int file_of(const struct file *f)
{
	char path[] = "/tmp/rt-archive-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, f->data, f->len), f->len);
	return fd;
}

static void three_received(struct file *f, uint64_t ns)
{
	begin_fates(f, 7);
	for (uint32_t id = 1; id <= 3; id++)
		put_id(f, ns, 1, id);
}

static void what_is_behind_the_hour_counts_for_a_minute(void **state)
{
	const uint64_t end = HOUR_NS - 1, minute = 60000000000;
	struct file f;

	three_received(&f, end);
	put_id(&f, end + 1, 2, 1);
	put_fate(&f, 2, RT_FATES_NOT_OFFERED);
	put_id(&f, end + minute + 1, 2, 3); /* too late */
	assert_fates(&f, -1, 1, 1, 1, 1);
	three_received(&f, end);
	put_id(&f, end + minute + 1, 2, 1);
	assert_fates(&f, -1, 0, 0, 0, 3);
}

static void what_the_next_file_has_counts_if_it_is_of_the_recording(void **state)
{
	static const struct {
		uint32_t begun;
		bool ends, torn;
		int later, offered, not_offered, open;
	} cases[] = {
		{7, false, false, 1, 1, 1, 1},
		{7, true, false, 1, 2, 1, 0}, /* its end: without a fate is offered */
		{7, false, true, 1, 1, 1, 1},
		{8, true, false, 0, 0, 0, 3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct file f, next;
		int fd;

		begin_fates(&next, cases[i].begun);
		put_id(&next, 1000, 2, 1);
		put_fate(&next, 2, RT_FATES_NOT_OFFERED);
		if (cases[i].ends)
			put_block(&next, RT_PCAPNG_FATES,
				(uint32_t[4]){RT_FATES_END | sizeof(struct rt_fates_queue) << 16},
				16);
		next.len += cases[i].torn ? 5 : 0;
		fd = file_of(&next);
		three_received(&f, 1);
		assert_fates(&f, fd, cases[i].later, cases[i].offered, cases[i].not_offered,
			cases[i].open);
		close(fd);
	}
}

static void a_file_without_begin_or_of_other_bytes_does_not_follow(void **state)
{
	struct file f, next;
	int fd;

	three_received(&f, 1);
	begin(&next);
	put_id(&next, 1000, 2, 1);
	fd = file_of(&next);
	assert_fates(&f, fd, 0, 0, 0, 3);
	close(fd);
	memset(next.data, 'x', sizeof(next.data));
	fd = file_of(&next);
	assert_fates(&f, fd, 0, 0, 0, 3);
	close(fd);
	assert_fates(&f, fd, 0, 0, 0, 3); /* also one that cannot be read */
}

/* Without a folder for it. */
static void a_temporary_file_that_cannot_be_made_is_an_error_that_stays(void **state)
{
	struct file f;
	struct rt_archive *a;
	struct ArrowArrayStream s;
	struct ArrowArray b;

	begin(&f);
	for (unsigned i = 0; i < 60; i++) {
		put_packet(&f, i, sizeof(udp));
		f.data[f.len - 4 - sizeof(udp) + 35] = (uint8_t)i; /* the source port */
	}
	a = open_file(&f);
	a->flows->max = 3;
	s = next_packets(a);
	setenv("TMPDIR", "/nonexistent", 1);
	assert_int_equal(s.get_next(&s, &b), ENOENT);
	assert_null(a->flows->spill);
	assert_int_equal(spill_flows(a->flows), -ENOENT);
	unsetenv("TMPDIR");
	assert_int_equal(spill_flows(a->flows), 0);
	/* Unreadable packets are not left out. */
	assert_int_equal(s.get_next(&s, &b), ENOENT);
	assert_non_null(s.get_last_error(&s));
	s.release(&s);
	assert_int_equal(rt_archive_part_flows(a, &s), -ENOENT);
	assert_int_equal(rt_archive_part_next(a), -ENOENT);
	rt_archive_close(a);
}

static void damage_ends_the_file(void **state)
{
	struct file f;
	struct rt_archive *a;
	struct ArrowArrayStream s;
	struct ArrowArray b;
	char *info;

	begin(&f);
	put_packet(&f, 1, sizeof(udp));
	put_packet(&f, 2, sizeof(udp));
	f.data[f.len - 1] = 1; /* in the last length */
	a = open_file(&f);
	s = next_packets(a);
	assert_int_equal(s.get_next(&s, &b), 0);
	assert_int_equal(b.length, 1);
	b.release(&b);
	s.release(&s);
	assert_non_null(strstr(rt_archive_torn(a), "two different lengths"));
	info = rt_archive_part_info(a);
	assert_non_null(strstr(info, "\"app\":\"app\",\"port\":3"));
	rt_archive_free(info);
	rt_archive_close(a);
	memset(f.data, 'x', sizeof(f.data));
	assert_int_equal(rt_archive_memory(&a, f.data, f.len, 0), -EBADMSG);
	assert_non_null(rt_archive_torn(a));
	rt_archive_close(a);
}

/* The window moves on by reading, and grows for longer blocks. */
static void files_are_read_in_pieces(void **state)
{
	char path[] = "/tmp/rt-archive-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *data = malloc(3 << 20);
	const uint8_t *p;
	struct window w;

	assert_true(fd >= 0 && data);
	unlink(path);
	for (size_t i = 0; i < 3 << 20; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 12));
	assert_int_equal(write(fd, data, 3 << 20), 3 << 20);
	assert_int_equal(window_open(&w, fd), 0);
	for (size_t at = 0, n = 1; at < 3 << 20; at += n, n = n % 100000 + 1777) {
		ssize_t have = window_peek(&w, at, n, &p);

		assert_true(have >= 0 && ((size_t)have >= n || at + (size_t)have == 3 << 20));
		assert_memory_equal(p, data + at, (size_t)have < n ? (size_t)have : n);
	}
	assert_int_equal(window_peek(&w, 3 << 20, 1, &p), 0);
	window_close(&w);
	assert_int_equal(window_open(&w, fd), 0);
	assert_true(window_peek(&w, 100, 2 << 20, &p) >= 2 << 20);
	assert_memory_equal(p, data + 100, 2 << 20);
	window_close(&w);
	close(fd);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_those_of_the_packets),
		cmocka_unit_test(arrays_may_be_moved_out_and_outlive_all_else),
		cmocka_unit_test(parts_are_read_in_order_and_once),
		cmocka_unit_test(flows_count_what_was_merged_from_the_temporary_file),
		cmocka_unit_test(rows_by_flow_are_in_runs),
		cmocka_unit_test(a_temporary_file_that_cannot_be_made_is_an_error_that_stays),
		cmocka_unit_test(what_is_behind_the_hour_counts_for_a_minute),
		cmocka_unit_test(what_the_next_file_has_counts_if_it_is_of_the_recording),
		cmocka_unit_test(a_file_without_begin_or_of_other_bytes_does_not_follow),
		cmocka_unit_test(damage_ends_the_file),
		cmocka_unit_test(files_are_read_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
