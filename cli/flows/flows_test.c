/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap flows, with a reader that is made to order: what it refuses, counts and prints. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/fake_reader.h"
#include "cli/test_command.h"

/* 10.0.0.1:1024 to 10.0.0.2:53, UDP. */
static uint8_t udp[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64,
	17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 53, 0, 26};
static const struct fake_run runs[] = {{0, 0, 100, 60}, {0, 1, 50, 60}};

static int set_up(void **state)
{
	setenv("COLUMNS", "80", 1);
	fake = (struct fake){.apps = 1, .runs = runs, .run_count = 2, .bytes = udp};
	return 0;
}

static void mistakes_are_named(void **state)
{
	static const struct test_refusal refusals[] = {
		{"nowhere", STATUS_FAILED, "flows: no application is called 'nowhere'"},
		{"app0:p7", STATUS_FAILED, "application 'app0' has no port 'p7'"},
		{"--sample 3", STATUS_USAGE, "flows: --sample 3: "},
		{"--by latency", STATUS_USAGE,
			"flows: --by latency: latencies need ids; add --ids"},
		{"--fates", STATUS_USAGE, "a sample has not all packets; add --sample 1"},
		{"--fates --sample 1 --view thread", STATUS_USAGE, "use another --view"},
		{"--ipfix ::1 --view host", STATUS_USAGE, "its flows are 5-tuples"},
		{"-f nonsense", STATUS_USAGE, "flows: filter 'nonsense': "},
		{"--view port --by nothing", STATUS_USAGE, "choose from packets|bytes|latency"},
	};

	test_refusals(&cmd_flows, refusals, sizeof(refusals) / sizeof(refusals[0]));
	assert_int_equal(fake.attached, 0);
}

static double value_of(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(json_object_get(row, key), "value"));
}

static void flows_have_their_packets(void **state)
{
	json_t *j = test_application(&cmd_flows, "--once --json --sample 1 app0"), *row;

	assert_int_equal(json_array_size(json_object_get(j, "flows")), 1);
	row = test_at(j, "flows", 0);
	assert_string_equal(json_string_value(json_object_get(row, "source")), "10.0.0.1");
	assert_string_equal(json_string_value(json_object_get(row, "destination")), "10.0.0.2");
	assert_int_equal(test_number(row, "source_port"), 1024);
	assert_int_equal(test_number(row, "destination_port"), 53);
	assert_true(value_of(row, "packets") == 150);
	assert_true(value_of(row, "bytes") == 150 * 64); /* their length on the wire */
	assert_true(value_of(row, "share") == 1);
	assert_int_equal(test_number(json_object_get(j, "counts"), "captured"), 150);
	json_decref(j);
}

/* By addresses of both directions, ports, protocols. */
static void views_have_their_names(void **state)
{
	static const struct {
		const char *line, *name;
	} views[] = {
		{"--once --json --sample 1 --view host app0", "10.0.0.1"},
		{"--once --json --sample 1 --view pair app0", "10.0.0.1 <> 10.0.0.2"},
		{"--once --json --sample 1 --view port app0", "UDP 53"},
		{"--once --json --sample 1 --view protocol app0", "IPv4 UDP"},
		{"--once --json --sample 1 --view vlan app0", "no VLAN"},
		{"--once --json --sample 1 --view dscp app0", "DSCP 0"},
	};

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		json_t *j = test_application(&cmd_flows, views[i].line);

		assert_string_equal(
			json_string_value(json_object_get(test_at(j, "flows", 0), "name")),
			views[i].name);
		json_decref(j);
	}
}

static void the_table_fits(void **state)
{
	const char *text = test_command_output(&cmd_flows, "--once --sample 1 app0", STATUS_OK);

	test_assert_has(text, "10.0.0.1:1024 > 10.0.0.2:53 UDP");
	test_assert_has(
		text, "\n  The first one alone: ringtap record --tags as-is -f 'udp and src host ");
}

/* A packet that a filter refused, or that was lost, is in no flow, but counted. */
static void what_is_not_counted_is_named(void **state)
{
	json_t *j, *counts;

	fake.filtered = 7;
	fake.lost_later = 3;
	j = test_application(&cmd_flows, "--once --json --sample 1 -f udp app0");
	counts = json_object_get(j, "counts");
	assert_int_equal(test_number(counts, "seen"), 160);
	assert_int_equal(test_number(counts, "filtered"), 7);
	assert_int_equal(test_number(counts, "lost"), 3);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mistakes_are_named, set_up),
		cmocka_unit_test_setup(flows_have_their_packets, set_up),
		cmocka_unit_test_setup(views_have_their_names, set_up),
		cmocka_unit_test_setup(the_table_fits, set_up),
		cmocka_unit_test_setup(what_is_not_counted_is_named, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
