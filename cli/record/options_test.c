/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "config.h"
#include "sink/files.h"
#include "target/targets.h"
#include "base/test_util.h"
#include "base/util.h"
#include "target/which_app.h"

#define ARGS_MAX 40

/* Parses a line of words; quoted blanks are not needed here. */
static int parse(struct record_config *c, const char *line)
{
	static char copy[512];
	char *argv[ARGS_MAX + 1] = {"record"};
	int argc = 1;
	int ret;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w && argc < ARGS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	config_init(c);
	ret = options_parse(&cmd_record, argc, argv, c);
	return ret > 0 ? config_check(c) : ret;
}

static void options_of_interfaces_have_their_place(void **state)
{
	struct record_config c;

	assert_int_equal(parse(&c, "-s 96 -f arp -i a:0 -i b:1 -f ip -s 0 --queue 3 --direction "
				   "tx --ifname up"),
		0);
	assert_int_equal(c.capture.iface_count, 2);
	assert_string_equal(c.capture.ifaces[0].spec, "a:0");
	assert_string_equal(c.capture.ifaces[0].filter, "arp");
	assert_int_equal(c.capture.ifaces[0].snaplen, 96);
	assert_int_equal(c.capture.ifaces[0].queue, -1);
	assert_int_equal(c.capture.ifaces[0].directions, RINGTAP_RX | RINGTAP_TX);
	assert_null(c.capture.ifaces[0].ifname);
	assert_string_equal(c.capture.ifaces[1].filter, "ip");
	assert_int_equal(c.capture.ifaces[1].snaplen, RINGTAP_SNAPLEN_MAX);
	assert_int_equal(c.capture.ifaces[1].queue, 3);
	assert_int_equal(c.capture.ifaces[1].directions, RINGTAP_TX);
	assert_string_equal(c.capture.ifaces[1].ifname, "up");
	assert_true(c.capture.ifaces[0].compiled.len > 0);
	config_free(&c);
	assert_int_equal(parse(&c, "-f arp"), 0);
	assert_int_equal(c.capture.iface_count, 1);
	assert_null(c.capture.ifaces[0].spec);
	assert_string_equal(c.capture.ifaces[0].filter, "arp");
	config_free(&c);
}

static void ids_need_no_target(void **state)
{
	struct record_config c;

	assert_int_equal(parse(&c, "--ids"), 0);
	assert_int_equal(c.capture.iface_count, 1);
	config_free(&c);
	assert_int_equal(parse(&c, "--fates -s 64"), 0);
	config_free(&c);
}

/* The first --cut that matches applies, to all interfaces. */
static void cuts_are_of_all_interfaces(void **state)
{
	struct record_config c;

	assert_int_equal(parse(&c, "-i a:0 --cut headers:udp -f ip -i b:0 --cut 96"), 0);
	assert_true(c.capture.options.lengths);
	assert_int_equal(c.capture.cut_count, 2);
	assert_string_equal(c.comments[0], "cut: headers:udp, 96");
	for (unsigned i = 0; i < 2; i++)
		assert_true(c.capture.ifaces[i].compiled.len > 100);
	assert_true(c.capture.ifaces[0].compiled.len > c.capture.ifaces[1].compiled.len);
	config_free(&c);
	assert_int_equal(parse(&c, "-i a:0"), 0);
	assert_false(c.capture.options.lengths);
	assert_null(c.cuts);
	config_free(&c);
}

static void limits_of_flows(void **state)
{
	static const struct {
		const char *line;
		uint32_t limit;
		bool packets, inner;
	} cases[] = {{"--first 32k/flow", 32768, false, false},
		{"--first 100/flow --inner", 100, false, true},
		{"--first 2G/flow", 1u << 31, false, false},
		{"--first 1.5KiB/flow", 1536, false, false},
		{"--first 100p/flow", 100, true, false},
		{"--inner --first 2kp/flow", 2000, true, true}};
	struct record_config c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(&c, cases[i].line), 0);
		assert_int_equal(c.capture.options.first, cases[i].limit);
		assert_int_equal(c.capture.options.first_packets, cases[i].packets);
		assert_int_equal(c.capture.options.first_inner, cases[i].inner);
		config_free(&c);
	}
}

static void tunnels_are_for_filters(void **state)
{
	struct record_config c;
	uint32_t plain;

	assert_int_equal(parse(&c, "-f udp"), 0);
	plain = c.capture.ifaces[0].compiled.len;
	config_free(&c);
	assert_int_equal(parse(&c, "-f udp --inner"), 0);
	assert_true(c.capture.ifaces[0].compiled.len > 10 * plain);
	config_free(&c);
	assert_int_equal(parse(&c, "--inner"), 0);
	assert_int_equal(c.capture.ifaces[0].compiled.len, 0);
	config_free(&c);
}

/* A word is of no -i: the options that no -i has taken are its own, wherever they stand. */
static void words_have_the_options_of_no_interface(void **state)
{
	struct record_config c;

	assert_int_equal(parse(&c, "b:1 -s 96 -i a:0 -f ip c -s 64"), 0);
	assert_int_equal(c.capture.iface_count, 3);
	assert_string_equal(c.capture.ifaces[0].spec, "b:1");
	assert_null(c.capture.ifaces[0].filter);
	assert_int_equal(c.capture.ifaces[0].snaplen, 96);
	assert_false(c.capture.ifaces[0].port_alone);
	assert_string_equal(c.capture.ifaces[1].spec, "a:0");
	assert_string_equal(c.capture.ifaces[1].filter, "ip");
	assert_int_equal(c.capture.ifaces[1].snaplen, 64);
	assert_true(c.capture.ifaces[1].port_alone);
	assert_string_equal(c.capture.ifaces[2].spec, "c");
	assert_null(c.capture.ifaces[2].filter);
	assert_int_equal(c.capture.ifaces[2].snaplen, 96);
	config_free(&c);
	assert_int_equal(parse(&c, "a b -f arp --queue 3"), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_string_equal(c.capture.ifaces[i].filter, "arp");
		assert_true(c.capture.ifaces[i].compiled.len > 0);
		assert_int_equal(c.capture.ifaces[i].queue, 3);
	}
	config_free(&c);
}

static void limits_and_values(void **state)
{
	struct record_config c;

	assert_int_equal(
		parse(&c, "-a duration:1.5 -a filesize:7 -b filesize:5 -b files:3 -b interval:60 "
			  "-w x -c 12 --buffer=2M --compress lz4 --on-full wait --timestamp nic"),
		0);
	assert_int_equal(c.stop.duration_ns, 1500000000);
	assert_int_equal(c.stop.bytes, 7000);
	assert_int_equal(c.stop.packets, 12);
	assert_int_equal(c.rotate.bytes, 5000);
	assert_int_equal(c.rotate.files, 3);
	assert_int_equal(c.rotate.interval_ns, 60000000000);
	assert_int_equal(c.capture.options.buffer_size, 2 << 20);
	assert_int_equal(c.output.compress, COMPRESS_LZ4);
	assert_int_equal(c.capture.options.on_full, RINGTAP_WAIT);
	assert_int_equal(c.capture.options.timestamp, RINGTAP_NIC);
	config_free(&c);
	/* -c and -a packets are the same thing, as in dumpcap. */
	assert_int_equal(parse(&c, "-a packets:9"), 0);
	assert_int_equal(c.stop.packets, 9);
	config_free(&c);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *message;
	} bad[] = {
		{"--buffe 1M", "--buffe"},
		{"--nonsense", "--nonsense"},
		{"-Z", "-Z"},
		{"-i", "needs a value"},
		{"-s x", "x"},
		{"-s -5", "-5"},
		{"-s 262145", "262145"},
		{"-c 0", "out of range"},
		{"-c 99999999999999999999999", "out of range"},
		{"-a duration", "duration"},
		{"-a moon:1", "moon"},
		{"-a interval:1", "interval"},
		{"-a duration:0", "above zero"},
		{"-a filesize:18446744073709551615", "too large; give at most 18446744073709551"},
		{"-a duration:99999999999999999999", "too large; give at most 36500d"},
		{"-b interval:36501d", "too large; give at most 36500d"},
		{"-b filesize:0", "above zero"},
		{"-b files:3", "-b"},
		{"-b filesize:3 -w -", "standard output"},
		{"-b printname:stderr", "no condition"},
		{"--split queue", "interface|direction"},
		{"--split direction -w -", "standard output is one file"},
		{"--split direction -b packets:3", "-b also makes several files"},
		{"--split interface -a filesize:5", "one file after the other"},
		{"--split interface -a files:5", "one file after the other"},
		{"--split interface --fates", "leave out --split or --fates"},
		{"-b printname:", "printname"},
		{"-b nametimenum:0", "above zero"},
		{"-a printname:x", "unknown condition"},
		{"--direction up", "rx|tx|both"},
		{"--queue 70000", "70000"},
		{"--buffer 1K", "out of range; give 64K to 64G"},
		{"--buffer 64", "'64' has no unit; 64M or 64K?"},
		{"--buffer 1Z", "1Z"},
		{"--compress zip", "zip"},
		{"-P --capture-comment x", "-P"},
		{"--anonymize --capture-comment x", "--capture-comment"},
		{"--anonymize --html x", "the page of --html has names"},
		{"--anonymize --ifname x", "--ifname"},
		{"--anonymize -i a:0 --ifdescr x", "--ifdescr"},
		{"--payload zero", "--payload"},
		{"--key x", "--key"},
		{"--capture-comment 1 --capture-comment 2 --capture-comment 3 --capture-comment 4 "
		 "--capture-comment 5 --capture-comment 6 --capture-comment 7 --capture-comment 8 "
		 "--capture-comment 9 --capture-comment a --capture-comment b --capture-comment c "
		 "--capture-comment d --capture-comment e --capture-comment f --capture-comment g "
		 "--capture-comment h",
			"too many comments"},
		{"--threads 2", "--compress"},
		{"--threads 65 --compress lz4", "--threads"},
		{"--sample 3", "--sample 3: not a power of two"},
		{"--sample 0", "give 1 to 16777216"},
		{"--sample 33554432", "give 1 to 16777216"},
		{"--sample 4 --fates", "leave out --sample"},
		{"--first 32k/flow --fates", "leave out --first"},
		{"--first 32k", "unknown limit; give a size or packets"},
		{"--first /flow", "unknown limit"},
		{"--first p/flow", "unknown limit"},
		{"--first 0/flow", "unknown limit"},
		{"--first 0p/flow", "unknown limit"},
		{"--first 3G/flow", "unknown limit"},
		{"--first 1x/flow", "unknown limit"},
		{"--first 1/flows", "unknown limit"},
		{"--first 1/flow --first-flows 128", "give 256 to 16384"},
		{"--first 1/flow --first-flows 1000", "1000: not a power of two"},
		{"-q=1", "="},
		{"--json=1", "--json: takes no value"},
		{"-f foo,bar", "syntax error"},
	};
	struct record_config c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(&c, bad[i].line), -EINVAL);
		if (!strstr(message_last(), bad[i].message))
			fail_msg("'%s' gave '%s'", bad[i].line, message_last());
		config_free(&c);
	}
}

/* A command with words besides its options, which it takes one by one. */
struct words {
	const char *list[4];
	unsigned count;
	bool flag;
};

static int take_word(void *ctx, const char *text)
{
	struct words *w = ctx;

	w->list[w->count++] = text;
	return *text == '!' ? -EINVAL : 0;
}

static int take_flag(void *ctx, int id, const struct option_value *v)
{
	((struct words *)ctx)->flag = true;
	return 0;
}

static const struct option_def flag[] = {
	{OPTION_SET(1), OPTION_FLAG, 'x', "extra", NULL, NULL, 0, 0, "It"}};

static void operands_between_options(void **state)
{
	const struct command cmd = {.name = "words",
		.options = flag,
		.option_count = 1,
		.operands = "WORD...",
		.operand = take_word,
		.set = take_flag};
	char *good[] = {"words", "a", "--extra", "b", "--", "-c", NULL};
	char *bad[] = {"words", "a", "!", "b", NULL};
	struct words w = {.count = 0};

	assert_int_equal(options_parse(&cmd, 6, good, &w), 1);
	assert_int_equal(w.count, 3);
	assert_string_equal(w.list[0], "a");
	assert_string_equal(w.list[1], "b");
	assert_string_equal(w.list[2], "-c");
	assert_true(w.flag);
	w.count = 0;
	assert_int_equal(options_parse(&cmd, 4, bad, &w), -EINVAL);
	assert_int_equal(w.count, 2);
}

static void operands_that_end_the_options(void **state)
{
	const struct command cmd = {.name = "words",
		.options = flag,
		.option_count = 1,
		.operands = "COMMAND...",
		.set = take_flag};
	char *plain[] = {"words", "-x", "tcpdump", "-x", "-i", "y", NULL};
	char *dashes[] = {"words", "--", "-tool", "-x", NULL};
	struct words w = {.count = 0};

	assert_int_equal(options_parse(&cmd, 6, plain, &w), 1);
	assert_true(w.flag);
	assert_string_equal(plain[optind], "tcpdump");
	w.flag = false;
	assert_int_equal(options_parse(&cmd, 4, dashes, &w), 1);
	assert_false(w.flag);
	assert_string_equal(dashes[optind], "-tool");
}

/* Each value goes to its field, and leaves those around it. */
static void values_that_are_stored(void **state)
{
	struct fields {
		uint8_t before, byte;
		bool flag, other;
		uint16_t half, beside;
		uint32_t word, behind;
		enum { ONE, TWO, THREE } choice;
		uint64_t whole;
		const char *text;
	} f;
	static const struct option_def options[] = {
		{OPTION_TO(struct fields, byte), OPTION_NUMBER, 'b', NULL, "N", NULL, 0, 255, ""},
		{OPTION_TO(struct fields, flag), OPTION_FLAG, 'f', NULL, NULL, NULL, 0, 0, ""},
		{OPTION_TO(struct fields, half), OPTION_NUMBER, 'H', NULL, "N", NULL, 0, 65535, ""},
		{OPTION_TO(struct fields, word), OPTION_SIZE, 'w', NULL, "N", NULL, 0, UINT32_MAX,
			""},
		{OPTION_TO(struct fields, choice), OPTION_CHOICE, 'c', NULL, "C", "one|two|three",
			0, 0, ""},
		{OPTION_TO(struct fields, whole), OPTION_SIZE, 'W', NULL, "N", NULL, 0, UINT64_MAX,
			""},
		{OPTION_TO(struct fields, text), OPTION_TEXT, 't', NULL, "T", NULL, 0, 0, ""},
	};
	const struct command cmd = {.name = "fields",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0])};
	char *argv[] = {
		"fields", "-b1", "-f", "-H515", "-w", "3M", "-cthree", "-W", "5G", "-ttext", NULL};
	char *bad[] = {"fields", "-b256", NULL};

	memset(&f, 0xff, sizeof(f));
	f.flag = f.other = false;
	assert_int_equal(options_parse(&cmd, 10, argv, &f), 1);
	assert_int_equal(f.before, 0xff);
	assert_int_equal(f.byte, 1);
	assert_true(f.flag && !f.other);
	assert_int_equal(f.half, 515);
	assert_int_equal(f.beside, 0xffff);
	assert_int_equal(f.word, 3 << 20);
	assert_int_equal(f.behind, UINT32_MAX);
	assert_int_equal(f.choice, THREE);
	assert_int_equal(f.whole, UINT64_C(5) << 30);
	assert_ptr_equal(f.text, argv[9] + 2);
	assert_int_equal(options_parse(&cmd, 2, bad, &f), -EINVAL);
	assert_int_equal(f.byte, 1);
}

static void applications_and_ports_with_colons(void **state)
{
	static const char *const apps[] = {"a:b:c", "ovs:p1", "ovs", "0000"};
	static const struct {
		const char *spec;
		int app;
		const char *port;
	} cases[] = {
		{"a:b:c", 0, NULL},
		{"a:b:c:p0", 0, "p0"},
		{"a:b", -1, "a:b"},
		{"ovs:p1", 2, "p1"},
		{"ovs:p0", 2, "p0"},
		{"ovs:", 2, NULL},
		{"ovs:0000:03:00.0", 2, "0000:03:00.0"},
		{"0000:03:00.0", 3, "03:00.0"},
		{"0001:03:00.0", -1, "0001:03:00.0"},
		{"ovs", 2, NULL},
		{"ov", -1, "ov"},
		{"ov:p0", -1, "ov:p0"},
		{":p0", -1, ":p0"},
		{"3", -1, "3"},
		{NULL, -1, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *port;
		int app;

		target_split(cases[i].spec, apps, 4, &app, &port);
		assert_int_equal(app, cases[i].app);
		if (cases[i].port)
			assert_string_equal(port, cases[i].port);
		else
			assert_null(port);
	}
}

static void assert_name(char *name, const char *expected)
{
	assert_string_equal(name, expected);
	free(name);
}

static void names_of_files(void **state)
{
	setenv("TZ", "UTC", 1);
	assert_name(file_name("a/cap.pcapng", 1, 0, false), "a/cap_00001_19700101000000.pcapng");
	assert_name(file_name("cap", 12, 86399, false), "cap_00012_19700101235959");
	assert_name(file_name("a.b/cap", 1, 0, false), "a.b/cap_00001_19700101000000");
	assert_name(file_name("x.y.pcap", 1, 0, false), "x.y_00001_19700101000000.pcap");
	assert_name(file_name("c.pcapng.zst", 1, 0, false), "c_00001_19700101000000.pcapng.zst");
	assert_name(file_name("c.lz4", 1, 0, false), "c_00001_19700101000000.lz4");
	assert_name(file_name(".hidden", 1, 0, false), ".hidden_00001_19700101000000");
	assert_name(file_name("w", 100001, 0, false), "w_00001_19700101000000");
	assert_name(file_name("a/cap.pcapng", 1, 0, true), "a/cap_19700101000000_00001.pcapng");
	assert_name(file_name_default("ovs", ".pcapng", 0), "ringtap_ovs_19700101000000.pcapng");
	assert_name(file_name_part("a/cap.pcapng", "tx"), "a/cap_tx.pcapng");
	assert_name(file_name_part("cap.pcapng.zst", "my/port"), "cap_my_port.pcapng.zst");
	assert_name(file_name_part("a.b/cap", "p0"), "a.b/cap_p0");
	assert_name(file_name_default("a/b", "", 0), "ringtap_a_b_19700101000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_interfaces_have_their_place),
		cmocka_unit_test(ids_need_no_target),
		cmocka_unit_test(cuts_are_of_all_interfaces),
		cmocka_unit_test(limits_of_flows),
		cmocka_unit_test(tunnels_are_for_filters),
		cmocka_unit_test(words_have_the_options_of_no_interface),
		cmocka_unit_test(limits_and_values),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(operands_between_options),
		cmocka_unit_test(operands_that_end_the_options),
		cmocka_unit_test(values_that_are_stored),
		cmocka_unit_test(applications_and_ports_with_colons),
		cmocka_unit_test(names_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
