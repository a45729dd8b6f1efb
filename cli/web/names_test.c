/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that are empty, equal or long. */
#include <stdio.h>
#include <string.h>

#include "test_web.h"

static void ports_mempools_and_rings_may_have_no_name(void **state)
{
	struct reader c;
	json_t *j;

	app->s.ports[0].name[0] = app->s.pools[0].name[0] = app->s.rings[0].name[0] = '\0';
	c = subscribe("?app=app", 0);
	j = shown_later(&c);
	assert_non_null(row_of(j, "ports", "(no name)"));
	assert_non_null(row_of(j, "pools", "(no name)"));
	assert_non_null(row_of(j, "rings", "(no name)"));
	box_at(panel_of(j, "pipeline"), 0, "from (no name)");
	json_decref(j);
	unsubscribe(&c);
}

static size_t curves_of(const json_t *document, const char *panel)
{
	return json_array_size(json_object_get(panel_of(document, panel), "series"));
}

static void threads_of_one_name_stay_apart(void **state)
{
	struct reader c;
	json_t *j;

	app->s.snapshot.thread_count = 2;
	app->s.threads[0].lcore = UINT32_MAX;
	strcpy(app->s.threads[0].name, "worker");
	app->s.threads[1] = app->s.threads[0];
	app->s.threads[1].slot = 1;
	app->s.threads[1].tid = 4713;
	c = subscribe("?app=app", 0);
	j = shown_later(&c);
	assert_non_null(row_of(j, "threads", "thread worker (4712)"));
	assert_non_null(row_of(j, "threads", "thread worker (4713)"));
	assert_int_equal(curves_of(j, "busy"), 2);
	box_at(panel_of(j, "pipeline"), 2, "thread worker (4712)");
	json_decref(j);
	unsubscribe(&c);
}

static void forward_both_ways(struct fake_app *a, uint64_t ns)
{
	fake_forward(a, ns);
	a->s.pairs[1] = a->s.pairs[0];
	a->s.pairs[1].rx_port = 1;
	a->s.pairs[1].tx_port = 0;
	a->s.buckets[1][500] = a->s.buckets[0][500];
}

static void long_names_of_ports_stay_apart(void **state)
{
	struct reader c;
	json_t *j;

	app->work = forward_both_ways;
	app->s.snapshot.pair_count = 2;
	strcpy(app->s.ports[0].name, "0000:08:00.0_representor_pf0vf1");
	strcpy(app->s.ports[1].name, "0000:08:00.0_representor_pf0vf10");
	c = subscribe("?app=app", 0);
	j = shown_later(&c);
	assert_int_equal(curves_of(j, "latency"), 2);
	json_decref(j);
	unsubscribe(&c);
}

/* As long as a file's name, about. */
static void applications_may_have_long_names(void **state)
{
	char query[256];
	struct reader c;

	snprintf(query, sizeof(query), "?app=%0*d", 230, 0);
	c = subscribe(query, 0);
	skip_event(&c, "document");
	unsubscribe(&c);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ports_mempools_and_rings_may_have_no_name),
		CASE(threads_of_one_name_stay_apart),
		CASE(long_names_of_ports_stay_apart),
		CASE(applications_may_have_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
