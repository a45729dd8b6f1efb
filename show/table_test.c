/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of metrics: their order, width and cells. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "table.h"

static const struct column columns[] = {
	{"NAME", 6, 0, RT_M_PORT_NAME, false, false},
	{"RATE", 6, 0, RT_M_PACKET_RATE, false, false},
	{"MORE", 6, 2, RT_M_PACKET_RATE, false, false},
	{"LESS", 6, 1, RT_M_PACKET_RATE, false, false},
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
		snprintf(r->cell[0].text, METRIC_TEXT_LEN, "%s", names[i]);
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

static void assert_cell(enum rt_metric_id id, double v, const char *text)
{
	const struct column c = {.id = id, .width = 15};
	const struct metric_value cell = {.number = v};
	char buf[256];

	cell_text(&c, &cell, false, c.width, buf, sizeof(buf));
	assert_string_equal(buf, text);
}

static void names_are_cut_in_the_middle(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {{"net_vhost_17", "net_vhost_17"}, {"net_vhost_ports_17", "net_v~rts_17"},
		{"net_vhost_ports_18", "net_v~rts_18"}, {"lcore 1 (worker, 4)", "lcore 1"},
		{"a-thread-name (4711)", "a-thr~d-name"}};
	const struct column c = {.id = RT_M_PORT_NAME, .width = 12};
	char buf[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct metric_value cell = {0};

		snprintf(cell.text, sizeof(cell.text), "%s", rows[i].text);
		assert_string_equal(
			cell_text(&c, &cell, false, c.width, buf, sizeof(buf)), rows[i].shown);
	}
}

static void cells(void **state)
{
	assert_cell(RT_M_PACKET_RATE, 0, "0");
	assert_cell(RT_M_PACKET_RATE, 999, "999");
	assert_cell(RT_M_PACKET_RATE, 999.9, "1k");
	assert_cell(RT_M_PACKET_RATE, 148809523, "149M");
	assert_cell(RT_M_PACKET_RATE, NAN, "-");
	assert_cell(RT_M_BUSY_SHARE, 1, "100");
	assert_cell(RT_M_BUSY_SHARE, 0.004, "0.4");
	assert_cell(RT_M_PER_CALL, 31.96, "32.0");
	assert_cell(RT_M_P50, 999, "999ns");
	assert_cell(RT_M_P50, 12345, "12.3us");
	assert_cell(RT_M_P50, 1234, "1.23us");
	assert_cell(RT_M_P50, 1.5e9, "1.5s");
	assert_cell(RT_M_POOL_PAGE, 2 << 20, "2MiB");
	assert_cell(RT_M_INFERRED, 1, "yes");
	assert_cell(RT_M_TID, NAN, "-");
	assert_cell(RT_M_POOL_SIZE, 1234567, "1234567");
	assert_cell(RT_M_POOL_SIZE, 999999999999999, "999999999999999");
	assert_cell(RT_M_POOL_SIZE, 1e15, "1000T");
	assert_cell(RT_M_POOL_SIZE, 1.8446744073709552e19, "18446744T");
}

static void bars_need_room_in_bytes(void **state)
{
	const struct column c = {.id = RT_M_BURSTS, .width = BURST_CLASSES};
	struct metric_value cell = {.number = 1, .bar = {0, 1, 0.001f, 0.5f}};
	char buf[CELL_LEN];

	cell_text(&c, &cell, false, BURST_CLASSES, buf, sizeof(buf));
	assert_string_equal(buf, " @.=       ");
	for (unsigned i = 0; i < BURST_CLASSES; i++)
		cell.bar[i] = 1;
	cell_text(&c, &cell, true, BURST_CLASSES, buf, sizeof(buf));
	assert_int_equal(strlen(buf), 3 * BURST_CLASSES);
	/* Cut, but never within a character. */
	cell_text(&c, &cell, true, BURST_CLASSES, buf, 8);
	assert_int_equal(strlen(buf), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_fit_and_sort),
		cmocka_unit_test(names_are_cut_in_the_middle),
		cmocka_unit_test(cells),
		cmocka_unit_test(bars_need_room_in_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
