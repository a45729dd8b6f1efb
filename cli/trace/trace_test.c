/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_util.h"
#include "common/sdt.h"
#include "maps.h"
#include "reports.h"
#include "trace.h"
#include "tracers.h"
#include "usdt/events.h"

#define ROUNDS 3000

/* So that this program has events, two places of one and one of another. */
static void fire(uint16_t port, uint64_t packets)
{
	RT_USDT(first, port);
	RT_USDT(first, port);
	RT_USDT(second, port, packets);
}

static void events_of_a_file(void **state)
{
	struct usdt_events events = {0};
	unsigned first = 0, second = 0;

	fire(1, 2);
	assert_int_equal(elf_events("/proc/self/exe", &events), 0);
#ifdef RINGTAP_USDT
	for (size_t i = 0; i < events.count; i++) {
		const struct usdt_event *e = &events.list[i];

		assert_non_null(strchr(e->arguments, '@'));
		assert_int_equal(!!strchr(e->arguments, ' '), !strcmp(e->name, "second"));
		*(strcmp(e->name, "first") ? &second : &first) += e->count;
	}
	assert_int_equal(first, 2);
	assert_int_equal(second, 1);
#else
	assert_int_equal(events.count + first + second, 0);
#endif
	elf_events_free(&events);
}

/* An event leaves one nop in the code. */
static void places_of_an_event(void **state)
{
	struct usdt_place p[2];
#ifdef RINGTAP_USDT
	unsigned char byte[2];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	fire(1, 2);
	assert_int_equal(elf_places("/proc/self/exe", "ringtap", "first", p, 2), 2);
	assert_int_equal(pread(fd, &byte[0], 1, (off_t)p[0].offset), 1);
	assert_int_equal(pread(fd, &byte[1], 1, (off_t)p[1].offset), 1);
	close(fd);
	assert_int_not_equal(p[0].offset, p[1].offset);
#ifdef __x86_64__
	assert_int_equal(byte[0], 0x90);
#endif
	assert_int_equal(byte[0], byte[1]);
	assert_int_equal(p[0].semaphore, 0);
	assert_int_equal(elf_places("/proc/self/exe", "ringtap", "first", p, 1), -E2BIG);
#endif
	assert_int_equal(elf_places("/proc/self/exe", "ringtap", "third", p, 2), 0);
	assert_int_equal(elf_places("/proc/self/exe", "other", "first", p, 2), 0);
	assert_int_equal(elf_places("/nonexistent", "ringtap", "first", p, 2), -ENOENT);
}

static void no_elf_file(void **state)
{
	static const char *const paths[] = {
		"/proc/self/maps", "/dev/zero", "/proc/self", "/dev/null"};
	struct usdt_events events = {0};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(elf_events(paths[i], &events), -ENOEXEC);
	assert_int_equal(elf_events("/nonexistent", &events), -ENOENT);
	assert_int_equal(events.count, 0);
}

static uint8_t *load(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	struct stat st;
	uint8_t *data;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	*size = (size_t)st.st_size;
	data = malloc(*size);
	assert_int_equal(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static uint32_t next_random(uint32_t *x)
{
	return *x = *x * 1664525 + 1013904223;
}

/* Where it matters: the file's header, the table of sections, the notes. */
static size_t place(const uint8_t *data, size_t size, size_t notes, uint32_t r)
{
	uint64_t table;

	memcpy(&table, data + 40, sizeof(table)); /* e_shoff of ELF64 */
	switch (r % 3) {
	case 0: return r / 3 % 64;
	case 1: return table + r / 3 % (size - table);
	default: return notes + r / 3 % 200;
	}
}

/* Whatever stands in the file, and however short it is: no crash (and no bytes of others, which
 * the sanitizers see). */
static void broken_files(void **state)
{
	size_t size, notes;
	uint8_t *data = load("/proc/self/exe", &size), *at = memmem(data, size, "stapsdt", 8),
		old[4];
	int fd = memfd_create("elf", 0);
	uint32_t x = 1;
	char path[64];

	notes = at ? (size_t)(at - data) - 12 : 64;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(write(fd, data, size), size);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct usdt_events events = {0};
		struct usdt_place places[2];
		size_t where = place(data, size, notes, next_random(&x) >> 8);
		size_t len = where + 4 <= size ? 4 : size - where;

		memcpy(old, data + where, len);
		for (size_t b = 0; b < len; b++)
			if (x >> (8 + b) & 1)
				data[where + b] = (uint8_t)(next_random(&x) >> 24);
		assert_int_equal(pwrite(fd, data + where, len, (off_t)where), len);
		(void)elf_events(path, &events);
		(void)elf_places(path, "ringtap", "first", places, 2);
		elf_events_free(&events);
		memcpy(data + where, old, len);
		assert_int_equal(pwrite(fd, old, len, (off_t)where), len);
	}
	for (size_t len = size; len > 0; len = len * 7 / 8) {
		struct usdt_events events = {0};
		struct usdt_place places[2];

		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		(void)elf_events(path, &events);
		(void)elf_places(path, "ringtap", "first", places, 2);
		elf_events_free(&events);
	}
	close(fd);
	free(data);
}

/* Sections that all lie over one another, in a hole of the file. Each is less than may be read. */
#define BOMBS 300
static void bomb_of_sections(void **state)
{
	static const char names[] = "\0.note.stapsdt";
	Elf64_Shdr table[BOMBS + 2] = {0};
	Elf64_Ehdr header = {.e_ident = ELFMAG "\2\1\1",
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_shoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_shentsize = sizeof(table[0]),
		.e_shnum = BOMBS + 2,
		.e_shstrndx = BOMBS + 1};
	size_t at = sizeof(header) + sizeof(table), size = 512 << 10;
	struct usdt_events events = {0};
	int fd = memfd_create("bomb", 0);
	struct rusage before, after;
	char path[64];

	for (unsigned i = 1; i <= BOMBS; i++)
		table[i] = (Elf64_Shdr){.sh_name = 1,
			.sh_type = SHT_NOTE,
			.sh_offset = at + 64,
			.sh_size = size,
			.sh_addralign = 4};
	table[BOMBS + 1] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
		.sh_offset = at,
		.sh_size = sizeof(names),
		.sh_addralign = 1};
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, table, sizeof(table)), sizeof(table));
	assert_int_equal(write(fd, names, sizeof(names)), sizeof(names));
	assert_int_equal(ftruncate(fd, (off_t)(at + 64 + size)), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	assert_int_equal(elf_events(path, &events), -E2BIG);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 32 << 10); /* KiB; not 150 MiB */
	/* A table of names that is all of a hole. */
	table[BOMBS + 1].sh_size = UINT64_C(1) << 32;
	assert_int_equal(ftruncate(fd, (off_t)(UINT64_C(1) << 33)), 0);
	assert_int_equal(pwrite(fd, table, sizeof(table), sizeof(header)), sizeof(table));
	assert_int_equal(elf_events(path, &events), -ENOEXEC);
	assert_int_equal(events.count, 0);
	elf_events_free(&events);
	close(fd);
}

static void names_of_probes(void **state)
{
	static const char *const pairs[][2] = {
		{"ringtap:drop { @ = count(); }", "usdt:*:ringtap:drop { @ = count(); }"},
		{"BEGIN{}ringtap:a,ringtap:b{}", "BEGIN{}usdt:*:ringtap:a,usdt:*:ringtap:b{}"},
		{"usdt:*:ringtap:drop {}", "usdt:*:ringtap:drop {}"},
		{"usdt:/lib/ringtap:ringtap:x {}", "usdt:/lib/ringtap:ringtap:x {}"},
		{"/* ringtap:x */ // ringtap:y\nringtap:z {}",
			"/* ringtap:x */ // ringtap:y\nusdt:*:ringtap:z {}"},
		{"x { printf(\"ringtap:x \\\"ringtap:\"); }",
			"x { printf(\"ringtap:x \\\"ringtap:\"); }"},
		{"/* c */ringtap:x {}", "/* c */usdt:*:ringtap:x {}"},
		{"myringtap:x {}", "myringtap:x {}"},
		{"\"ringtap:x", "\"ringtap:x"},
		{"/* ringtap:x", "/* ringtap:x"},
		{"\"\\", "\"\\"},
		{"", ""},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char *text = trace_probe_names(pairs[i][0]);

		assert_string_equal(text, pairs[i][1]);
		free(text);
	}
}

static void keys(void **state)
{
	uint64_t n[3] = {0};

	assert_string_equal(maps_key("1,22,cc,1", n, 2), "cc,1");
	assert_int_equal(n[1], 22);
	assert_string_equal(maps_key("7,", n, 1), "");
	assert_string_equal(maps_key("7", n, 1), "");
	assert_null(maps_key("7", n, 2));
	assert_null(maps_key("x", n, 1));
	assert_null(maps_key("7x,8", n, 2));
	assert_null(maps_key("-7", n, 1));
	assert_null(maps_key("99999999999999999999", n, 1));
}

static void maps_of_output(void **state)
{
	json_t *maps = maps_read("\n"
				 "{\"type\": \"printf\", \"data\": \"x\"}\n"
				 "nonsense\n"
				 "{\"type\": \"map\", \"data\": {\"@a\": {\"1\": 5}}}\n"
				 "[]\n"
				 "{\"type\": \"hist\", \"data\": {\"@h\": {\"1\": [{\"min\": 4, "
				 "\"max\": 7, \"count\": 2},{\"min\": 8, \"max\": 15, \"count\": "
				 "0},{\"min\": 16, \"count\": 3}]}}}");
	json_t *h = maps_histogram(maps_get(maps, "@h", "1"), 0.5);

	assert_int_equal(json_object_size(maps), 2);
	assert_int_equal(json_integer_value(maps_get(maps, "@a", "1")), 5);
	assert_null(maps_get(maps, "@b", "1"));
	assert_int_equal(maps_size(json_object_get(maps, "@a")), 1);
	assert_int_equal(maps_size(json_object_get(maps, "@h")), 2);
	assert_int_equal(json_array_size(h), 2);
	assert_true(json_number_value(json_array_get(json_array_get(h, 0), 0)) == 2.0);
	assert_true(json_number_value(json_array_get(json_array_get(h, 0), 1)) == 4.0);
	assert_true(json_is_null(json_array_get(json_array_get(h, 1), 1)));
	assert_int_equal(json_integer_value(json_array_get(json_array_get(h, 1), 2)), 3);
	json_decref(h);
	json_decref(maps);
}

/* bpftrace's way to write them is its own. */
static void names_beyond_ascii(void **state)
{
	json_t *maps = maps_read(
		"{\"type\": \"map\", \"data\": {\"@a\": {\"1,k\\uffffffc3\\uffffffb6\": 5}}}\n"
		"{\"type\": \"map\", \"data\": {\"@b\": {\"1,k\\uffffffe9s\": 6}}}\n"
		"{\"type\": \"map\", \"data\": {\"@c\": {\"1,\\\\uffffffe9\\u001b\": 7}}}\n"
		"{\"type\": \"map\", \"data\": {\"@d\": {\"1,\\uffffffz1\\uffffff");

	assert_int_equal(json_integer_value(maps_get(maps, "@a", "1,k\xc3\xb6")), 5);
	assert_int_equal(json_integer_value(maps_get(maps, "@b", "1,k?s")), 6);
	assert_int_equal(json_integer_value(maps_get(maps, "@c", "1,\\uffffffe9\x1b")), 7);
	assert_int_equal(json_object_size(maps), 3);
	json_decref(maps);
}

/* Names of processes are anybody's: they end in messages and on terminals. */
static void names_do_not_steer_terminals(void **state)
{
	json_t *row = json_pack("{s:s}", "by", "\x1b[31mevil\x7f\xc2\x9b");
	char buf[MAPS_TEXT_LEN];

	message_print("a\x1b[31mb\x7f\xc2\x9b"
		      "1\x9b"
		      "2\n3\xc3\x9f");
	assert_string_equal(message_last(), "a?[31mb\?\?\?1?2 3\xc3\x9f");
	assert_string_equal(maps_text(buf, row, "by", "?"), "?[31mevil\?\?\?");
	assert_string_equal(maps_text(buf, row, "no", "-"), "-");
	json_decref(row);
}

/* Two programs of one name, a thread that has ended, the idle task, no other task at all, and a
 * thread that was asleep. */
static void namesakes_are_told_apart(void **state)
{
	static const char *const rows[][3] = {{"rt-hog", "71", "71"}, {"rt-hog", "72", "73"},
		{"swapper/1", "0", "0"}, {"gone", "null", "999999999"}, {"null", "null", "null"},
		{"(stopped or asleep)", "null", "null"}};
	json_t *maps = maps_read(
		"{\"type\": \"hist\", \"data\": {\"@gap\": {\"5,poll\": []}}}\n"
		"{\"type\": \"map\", \"data\": {\"@process\": {\"71\": 71, \"73\": 72}}}\n"
		"{\"type\": \"stats\", \"data\": {\"@long\": {\"5,71,rt-hog\": {\"count\": 1, "
		"\"total\": 9},\"5,73,rt-hog\": {\"count\": 2, \"total\": 8},\"5,0,swapper/1\": "
		"{\"count\": 1, \"total\": 7},\"5,999999999,gone\": {\"count\": 1, \"total\": "
		"6},\"5,0,\": {\"count\": 1, \"total\": 5},\"5,5,\": {\"count\": 1, \"total\": 4},\"6,71,rt-hog\": {\"count\": 1, "
		"\"total\": 4}}}}");
	const struct trace_config cfg = {.long_ns = 100000};
	static struct ringtap_snapshot none;
	const struct trace t = {.cfg = &cfg, .stats = &none};
	json_t *doc = json_object(), *list, *row;
	size_t i;

	gaps_document(&t, maps, doc);
	list = json_object_get(json_array_get(json_object_get(doc, "threads"), 0), "long");
	assert_int_equal(json_array_size(list), sizeof(rows) / sizeof(rows[0]));
	json_array_foreach(list, i, row)
	{
		static const char *const keys[] = {"by", "pid", "tid"};

		for (unsigned k = 0; k < 3; k++) {
			char *text = json_dumps(json_object_get(row, keys[k]), JSON_ENCODE_ANY);
			size_t quote = *text == '"';

			assert_memory_equal(text + quote, rows[i][k], strlen(rows[i][k]));
			assert_int_equal(strlen(text), strlen(rows[i][k]) + 2 * quote);
			free(text);
		}
	}
	json_decref(doc);
	json_decref(maps);
}

/* The report of maps that bpftrace printed. */
static json_t *report_of(const struct trace_config *cfg, const char *lines,
	void (*document)(const struct trace *t, json_t *maps, json_t *doc))
{
	static struct ringtap_snapshot none;
	const struct trace t = {.cfg = cfg, .stats = &none};
	json_t *maps = maps_read(lines), *doc = json_object();

	document(&t, maps, doc);
	json_decref(maps);
	return doc;
}

#define BUCKET(size, n) "{\"min\":" #size ",\"max\":" #size ",\"count\":" #n "}"

static void bursts_of_queues(void **state)
{
	const struct trace_config cfg = {.empty = true};
	json_t *doc = report_of(&cfg,
		"{\"type\":\"hist\",\"data\":{\"@rx\":{\"0,1\":[" BUCKET(4, 1) "," BUCKET(
			8, 0) "," BUCKET(32,
			3) ",{\"min\":513,\"count\":2}]}}}\n"
			   "{\"type\":\"hist\",\"data\":{\"@tx\":{\"0,0\":[" BUCKET(6,
				   1) "]}}}\n"
				      "{\"type\":\"map\",\"data\":{\"@rx_big\":{\"0,1\":1200}}}\n"
				      "{\"type\":\"map\",\"data\":{\"@empty\":{\"0,1\":17,\"0,2\":5}}}\n",
		burst_document);
	json_t *rows = json_object_get(doc, "queues"), *rx = json_array_get(rows, 0);
	const char *text;

	assert_int_equal(json_array_size(rows), 3);
	assert_string_equal(json_string_value(json_object_get(rx, "direction")), "rx");
	assert_int_equal(json_integer_value(json_object_get(rx, "queue")), 1);
	assert_int_equal(json_integer_value(json_object_get(rx, "calls")), 6);
	assert_int_equal(json_integer_value(json_object_get(rx, "packets")), 1300);
	assert_int_equal(json_integer_value(json_object_get(rx, "calls_beyond_histogram")), 2);
	assert_int_equal(json_integer_value(json_object_get(rx, "packets_beyond_histogram")), 1200);
	assert_int_equal(json_integer_value(json_object_get(rx, "empty_calls")), 17);
	assert_int_equal(json_object_size(json_object_get(rx, "bursts")), 2);
	rx = json_array_get(rows, 1); /* a queue that was only polled */
	assert_int_equal(json_integer_value(json_object_get(rx, "calls")), 0);
	assert_int_equal(json_integer_value(json_object_get(rx, "empty_calls")), 5);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 2), "empty_calls")));
	test_stdout_begin();
	burst_print(doc);
	text = test_stdout_end();
	assert_non_null(strstr(
		text, "(unknown port) queue 1 rx: 6 bursts, 1,300 packets, 216.7 packets a burst"));
	assert_non_null(strstr(text, "  17 empty polls\n"));
	assert_non_null(strstr(text, "queue 0 tx: 1 bursts, 6 packets, 6.0 packets a burst"));
	json_decref(doc);
}

/* The first numbers of each row of a histogram in a text: "1 1;2 3 2;". */
static void rows_of(const char *text, char *out)
{
	for (const char *line = text; *line;
		line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != 0)) {
		unsigned low, high, n;

		if (!memchr(line, '%', strcspn(line, "\n")))
			continue;
		if (sscanf(line, " %u - %u %u", &low, &high, &n) == 3)
			out += sprintf(out, "%u-%u %u;", low, high, n);
		else if (sscanf(line, " %u %u", &low, &n) == 2)
			out += sprintf(out, "%u %u;", low, n);
	}
}

static void many_sizes_are_grouped(void **state)
{
	const struct trace_config cfg = {0};
	char lines[8192], rows[512] = "";
	size_t n = (size_t)sprintf(lines, "{\"type\":\"hist\",\"data\":{\"@rx\":{\"0,0\":[");
	json_t *doc;

	for (int i = 1; i <= 40; i++)
		n += (size_t)sprintf(
			lines + n, "%s{\"min\":%d,\"max\":%d,\"count\":1}", i > 1 ? "," : "", i, i);
	sprintf(lines + n, "]}}}\n");
	doc = report_of(&cfg, lines, burst_document);
	test_stdout_begin();
	burst_print(doc);
	rows_of(test_stdout_end(), rows);
	assert_string_equal(rows, "1 1;2-3 2;4-7 4;8-15 8;16-31 16;32-63 9;");
	json_decref(doc);
	doc = report_of(&cfg, "", burst_document);
	test_stdout_begin();
	burst_print(doc);
	assert_string_equal(test_stdout_end(), "\nNo bursts.\n");
	json_decref(doc);
}

static void losses_have_reasons(void **state)
{
	const struct trace_config cfg = {0};
	json_t *doc = report_of(&cfg,
		"{\"type\":\"stats\",\"data\":{\"@drop\":{\"1,0,32,7,fwd-1\":{\"count\":2,\"total\":12000},"
		"\"1,3,0,7,fwd-1\":{\"count\":1,\"total\":5},\"1,3,99,7,x\":{\"count\":1,\"total\":1}}}}\n"
		"{\"type\":\"stats\",\"data\":{\"@refused\":{\"1,65535,7,fwd-1\":{\"count\":3,\"total\":40}}}}\n"
		"{\"type\":\"stats\",\"data\":{\"@ring_full\":{\"1,3,2,7,fwd-1\":{\"count\":1,\"total\":5}}}}\n",
		drops_document);
	json_t *row = json_array_get(json_object_get(doc, "drops"), 0);
	const char *text;

	assert_int_equal(json_array_size(json_object_get(doc, "drops")), 3);
	assert_string_equal(json_string_value(json_object_get(row, "why")), "tx_full");
	assert_int_equal(json_integer_value(json_object_get(row, "packets")), 12000);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(row, "thread"), "tid")), 7);
	row = json_array_get(json_object_get(doc, "refused"), 0);
	assert_true(json_is_null(json_object_get(row, "queue")));
	assert_int_equal(json_integer_value(json_object_get(row, "packets")), 40);
	row = json_array_get(json_object_get(doc, "ring_full"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "session")), 2);
	test_stdout_begin();
	drops_print(doc);
	text = test_stdout_end();
	assert_non_null(strstr(text, "12,000"));
	assert_non_null(strstr(text, "thread fwd-1 (7)"));
	assert_non_null(strstr(text, "  tx_full: freed, as the port was full\n"));
	assert_non_null(strstr(text, "  ring_full: lost to a recording: its ring is full\n"));
	assert_non_null(strstr(text, "  refused: refused by the driver: TX is full\n"));
	assert_non_null(strstr(text, "reason 99"));
	json_decref(doc);
	doc = report_of(&cfg, "", drops_document);
	test_stdout_begin();
	drops_print(doc);
	assert_string_equal(test_stdout_end(), "\nNothing was lost.\n");
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_a_file),
		cmocka_unit_test(places_of_an_event),
		cmocka_unit_test(no_elf_file),
		cmocka_unit_test(broken_files),
		cmocka_unit_test(bomb_of_sections),
		cmocka_unit_test(names_of_probes),
		cmocka_unit_test(keys),
		cmocka_unit_test(maps_of_output),
		cmocka_unit_test(names_beyond_ascii),
		cmocka_unit_test(names_do_not_steer_terminals),
		cmocka_unit_test(namesakes_are_told_apart),
		cmocka_unit_test(bursts_of_queues),
		cmocka_unit_test(many_sizes_are_grouped),
		cmocka_unit_test(losses_have_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
