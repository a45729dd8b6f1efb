/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates, tables and the exporter's text, out of snapshots made by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/export/export.h"
#include "base/test_util.h"
#include "top.h"
#include "base/util.h"

static struct ringtap_queue_stats queues[2][3];
static struct ringtap_thread_stats threads[2][1];
static struct ringtap_port_stats ports[2][1];
static struct reading readings[2][1];
static struct ringtap_snapshot snapshots[2];
static struct watched app;

/* Two snapshots a second apart: one port, one thread, RX queues 0 and 1 and TX queue 0. */
static int setup(void **state)
{
	memset(queues, 0, sizeof(queues));
	memset(threads, 0, sizeof(threads));
	memset(ports, 0, sizeof(ports));
	memset(readings, 0, sizeof(readings));
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned q = 0; q < 3; q++) {
			queues[k][q].direction = q == 2 ? RINGTAP_TX : RINGTAP_RX;
			queues[k][q].queue = q == 1;
			queues[k][q].max_burst = 32;
		}
		snprintf(ports[k][0].name, sizeof(ports[k][0].name), "p0");
		threads[k][0].lcore = 3;
		threads[k][0].alive = true;
		snapshots[k] = (struct ringtap_snapshot){.taken_ns = (1000 + k) * NS_PER_S,
			.taken_mono_ns = (50 + k) * NS_PER_S,
			.tsc_hz = 1000000000,
			.collectors = RINGTAP_POLLS | RINGTAP_BYTES | RINGTAP_BUSY,
			.port_count = 1,
			.thread_count = 1,
			.queue_count = 3,
			.ports = {ports[k], sizeof(ports[k][0])},
			.threads = {threads[k], sizeof(threads[k][0])},
			.queues = {queues[k], sizeof(queues[k][0])}};
		readings[k][0].ns = (1000 + k) * NS_PER_S;
	}
	app = (struct watched){.name = (char *)"app",
		.now = &snapshots[1],
		.mark = &snapshots[0],
		.tsc_hz = 1e9,
		.from = readings[0],
		.to = readings[1],
		.reading_count = 1};
	return 0;
}

static void bursts(unsigned q, unsigned size, uint64_t polls)
{
	struct ringtap_queue_stats *x = &queues[1][q];

	x->burst[size] += polls;
	x->polls += polls;
	x->empty_polls += size ? 0 : polls;
	x->packets += size * polls;
	x->bytes += size * polls * 100;
	x->byte_packets += size * polls;
}

static void time_goes_on_when_the_clock_is_set_back(void **state)
{
	struct span s;

	snapshots[1].taken_ns = snapshots[0].taken_ns - 3600 * NS_PER_S;
	assert_true(span_of(&app, &s));
	assert_float_equal(s.seconds, 1, 1e-9);
}

static void tallies_of_queues(void **state)
{
	uint64_t classes[BURST_CLASSES];
	struct tally t;
	struct span s;

	bursts(0, 0, 60);
	bursts(0, 1, 10);
	bursts(0, 32, 30);
	bursts(1, 3, 100);
	queues[1][0].big_polls = 1;
	queues[1][0].big_packets = 600;
	queues[1][0].polls++;
	queues[1][0].packets += 600;
	assert_true(span_of(&app, &s));
	tally_sum(&t, &s, 0, RINGTAP_NO_INDEX, RINGTAP_RX);
	assert_int_equal(t.calls, 201);
	assert_int_equal(t.packets, 10 + 960 + 300 + 600);
	assert_int_equal(tally_quantile(&t, 0.5), 3);
	assert_int_equal(tally_quantile(&t, 0.9), 32);
	assert_int_equal(tally_quantile(&t, 1), RINGTAP_BURSTS + 1);
	assert_true(fabs(tally_mean_busy(&t) - 1870.0 / 141) < 1e-9);
	assert_true(fabs(tally_full(&t) - 30.0 / 201) < 1e-9);
	tally_fullest(&t, &s, 0, RINGTAP_NO_INDEX);
	assert_int_equal(t.calls, 101);
	assert_true(fabs(tally_full(&t) - 30.0 / 101) < 1e-9);
	/* What an entry without calls asked for once is of no interest. */
	queues[0][1] = queues[1][1];
	queues[1][1].max_burst = 512;
	tally_sum(&t, &s, 0, RINGTAP_NO_INDEX, RINGTAP_RX);
	assert_int_equal(t.max_burst, 32);
	assert_true(fabs(tally_full(&t) - 30.0 / 101) < 1e-9);
	memset(&queues[0][1], 0, sizeof(queues[0][1]));
	tally_sum(&t, &s, 0, RINGTAP_NO_INDEX, RINGTAP_RX);
	/* The big burst's bytes were not looked at: they count as the others. */
	assert_true(fabs(tally_bytes(&t) - 187000) < 1e-6);
	tally_classes(&t, classes);
	assert_int_equal(classes[0], 60);
	assert_int_equal(classes[1], 10);
	assert_int_equal(classes[2], 100);
	assert_int_equal(classes[6], 30);
	assert_int_equal(classes[10], 1);
	tally_sum(&t, &s, 0, RINGTAP_NO_INDEX, RINGTAP_TX);
	assert_true(isnan(tally_mean(&t)) && isnan(tally_bytes(&t)));
	assert_int_equal(tally_quantile(&t, 0.5), 0);
}

static void shares_of_threads(void **state)
{
	struct thread_rates r;
	struct span s;

	bursts(0, 32, 1000);
	threads[0][0].busy_cycles = 5;
	threads[1][0].busy_cycles = 5 + 320000000;
	threads[1][0].idle_cycles = 80000000;
	threads[0][0].read_ns = NS_PER_S;
	threads[1][0].read_ns = 3 * NS_PER_S;
	threads[1][0].wait_ns = NS_PER_S / 2;
	assert_true(span_of(&app, &s));
	rates_thread(&app, &s, 0, &r);
	assert_true(fabs(r.busy - 0.8) < 1e-9);
	assert_true(fabs(r.seen - 0.4) < 1e-9);
	assert_true(fabs(r.cycles_per_packet - 10000) < 1e-9);
	assert_true(fabs(r.wait - 0.25) < 1e-9);
	/* Another thread has the slot now: what the kernel said of the old one is of no use. */
	threads[1][0].generation = 7;
	rates_thread(&app, &s, 0, &r);
	assert_true(isnan(r.wait));
}

static void unsent_only_where_it_is_certain(void **state)
{
	struct driver_rates d;

	readings[1][0].port.opackets = 900;
	readings[0][0].least = 0;
	readings[0][0].most = 100;
	readings[1][0].least = 950;
	readings[1][0].most = 1000;
	/* 850 to 1,000 were handed over: 900 may be all of them. */
	rates_driver(&app, 0, &d);
	assert_true(d.known && d.unsent == 0);
	readings[1][0].port.opackets = 700;
	rates_driver(&app, 0, &d);
	assert_true(fabs(d.unsent - 225) < 1e-9);
	/* Nor is what may be in the hands of threads without a CPU. */
	readings[1][0].in_hand = 150;
	rates_driver(&app, 0, &d);
	assert_true(d.unsent == 0);
	readings[1][0].in_hand = 149;
	rates_driver(&app, 0, &d);
	assert_true(fabs(d.unsent - 225) < 1e-9);
	/* The application set the driver's counters to zero: what it has since then is the least.
	 */
	readings[0][0].port.opackets = 5000;
	rates_driver(&app, 0, &d);
	assert_true(fabs(d.opackets - 700) < 1e-9);
	/* Not asked again yet. */
	readings[1][0].ns = readings[0][0].ns;
	rates_driver(&app, 0, &d);
	assert_true(!d.known && isnan(d.unsent));
}

/* ---- tables */

static const struct column columns[] = {
	{"NAME", 6, 0, CELL_TEXT, false, ""},
	{"RATE", 6, 0, CELL_SI, false, ""},
	{"MORE", 6, 2, CELL_SI, false, ""},
	{"LESS", 6, 1, CELL_SI, false, ""},
};

static void tables_fit_and_sort(void **state)
{
	static const char *const names[] = {"b10", "b9", "a-long-name"};
	static const double rates[] = {1, NAN, 3};
	struct table t = {.columns = columns, .column_count = 4};
	unsigned width[COLUMNS_MAX];

	for (unsigned i = 0; i < 3; i++) {
		struct row *r = table_add(&t);

		assert_non_null(r);
		snprintf(r->cell[0].text, CELL_TEXT_LEN, "%s", names[i]);
		r->cell[1].number = rates[i];
	}
	table_fit(&t, 27, width);
	assert_int_equal(width[0], 6);
	assert_int_equal(width[2], 6);
	table_fit(&t, 26, width);
	assert_int_equal(width[2], 0);
	assert_int_equal(width[3], 6);
	assert_int_equal(width[0], 11); /* what it needs of what was left */
	table_fit(&t, 5, width);
	assert_int_equal(width[0], 6);
	assert_int_equal(width[1], 6);
	assert_int_equal(width[3], 0);
	table_sort(&t, 0, false);
	assert_string_equal(t.rows[1].cell[0].text, "b9");
	table_sort(&t, 1, false);
	assert_string_equal(t.rows[0].cell[0].text, "a-long-name");
	assert_string_equal(t.rows[2].cell[0].text, "b9");
	table_sort(&t, 1, true);
	assert_string_equal(t.rows[0].cell[0].text, "b10");
	assert_string_equal(t.rows[2].cell[0].text, "b9");
	table_free(&t);
}

static void assert_cell(enum cell_kind kind, double v, const char *text)
{
	const struct column c = {.kind = kind, .width = 15};
	const struct cell cell = {.number = v};
	char buf[256];

	cell_text(&c, &cell, false, c.width, buf, sizeof(buf));
	assert_string_equal(buf, text);
}

static void cells(void **state)
{
	assert_cell(CELL_SI, 0, "0");
	assert_cell(CELL_SI, 999, "999");
	assert_cell(CELL_SI, 999.9, "1.0k");
	assert_cell(CELL_SI, 148809523, "149M");
	assert_cell(CELL_SI, NAN, "-");
	assert_cell(CELL_PERCENT, 1, "100");
	assert_cell(CELL_PERCENT, 0.004, "0.4");
	assert_cell(CELL_MEAN, 31.96, "32.0");
	assert_cell(CELL_NS, 999, "999ns");
	assert_cell(CELL_NS, 12345, "12.3us");
	assert_cell(CELL_NS, 1.5e9, "1.5s");
	assert_cell(CELL_BYTES, 2 << 20, "2.0M");
}

static void bars_need_room_in_bytes(void **state)
{
	const struct column c = {.kind = CELL_BARS, .width = BARS_MAX};
	struct cell cell = {.number = 1, .bar = {0, 1, 0.001f, 0.5f}};
	char buf[CELL_TEXT_LEN * 4];

	cell_text(&c, &cell, false, BARS_MAX, buf, sizeof(buf));
	assert_string_equal(buf, " @.=       ");
	for (unsigned i = 0; i < BARS_MAX; i++)
		cell.bar[i] = 1;
	cell_text(&c, &cell, true, BARS_MAX, buf, sizeof(buf));
	assert_int_equal(strlen(buf), 3 * BARS_MAX);
	/* Cut, but never within a character. */
	cell_text(&c, &cell, true, BARS_MAX, buf, 8);
	assert_int_equal(strlen(buf), 6);
}

/* ---- the exporter's text */

static void labels_are_escaped(void **state)
{
	struct export_text t = {0};
	char labels[LABELS_LEN], longest[2 * LABELS_LEN];

	export_labels(labels, "a", "x\"\\\n\x1b\xff", "b", "", NULL);
	assert_string_equal(labels, "a=\"x\\\"\\\\???\",b=\"\"");
	memset(longest, '"', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	export_labels(labels, "a", longest, "b", "x", NULL);
	assert_in_range(strlen(labels), LABELS_LEN - 8, LABELS_LEN - 1);
	assert_true(labels[strlen(labels) - 1] == '"');
	export_family(&t, "some", "counter", "It.");
	export_count(&t, "", "a=\"b\"", UINT64_MAX);
	export_bucket(&t, "", 1e-7, 3);
	export_bucket(&t, "", 512, 3);
	export_bucket(&t, "", INFINITY, 3);
	assert_string_equal(t.data, "# HELP some_total It.\n# TYPE some_total counter\n"
				    "some_total{a=\"b\"} 18446744073709551615\n"
				    "some_bucket{le=\"1e-07\"} 3\nsome_bucket{le=\"512.0\"} 3\n"
				    "some_bucket{le=\"+Inf\"} 3\n");
	free(t.data);
}

static void text_grows(void **state)
{
	struct export_text t = {.openmetrics = true};

	export_family(&t, "x", "info", "It.");
	for (unsigned i = 0; i < 10000; i++)
		export_number(&t, "", "", 1);
	export_end(&t);
	assert_false(t.failed);
	assert_int_equal(t.len, strlen(t.data));
	assert_int_equal(t.len, strlen("# HELP x It.\n# TYPE x info\n# EOF\n") + 10000 * 9);
	free(t.data);
}

static void names_are_printable(void **state)
{
	struct ringtap_thread_stats t = {.lcore = UINT32_MAX, .tid = 7};
	char buf[THREAD_NAME_LEN], small[4];

	assert_string_equal(thread_name(buf, &t), "thread 7");
	memset(t.name, '\x1b', sizeof(t.name));
	t.name[sizeof(t.name) - 1] = '\0';
	assert_string_equal(thread_name(buf, &t), "???????????????");
	t.lcore = 127;
	assert_string_equal(thread_name(buf, &t), "lcore 127");
	assert_string_equal(printable(small, sizeof(small), "abcdef"), "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(time_goes_on_when_the_clock_is_set_back, setup),
		cmocka_unit_test_setup(tallies_of_queues, setup),
		cmocka_unit_test_setup(shares_of_threads, setup),
		cmocka_unit_test_setup(unsent_only_where_it_is_certain, setup),
		cmocka_unit_test(tables_fit_and_sort),
		cmocka_unit_test(cells),
		cmocka_unit_test(bars_need_room_in_bytes),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(text_grows),
		cmocka_unit_test(names_are_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
