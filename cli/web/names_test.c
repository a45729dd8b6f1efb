/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that are empty, equal or long. */
#include <stdio.h>
#include <string.h>

#include "test_web.h"

static void ports_and_mempools_may_have_no_name(void **state)
{
	struct reader c;
	json_t *j;

	app->s.ports[0].name[0] = app->s.pools[0].name[0] = '\0';
	c = subscribe("?app=app", 0);
	j = shown_later(&c);
	assert_non_null(row_of(j, "ports", "(no name)"));
	assert_non_null(row_of(j, "pools", "(no name)"));
	box_at(panel_of(j, "pipeline"), 0, "from (no name)");
	json_decref(j);
	unsubscribe(&c);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ports_and_mempools_may_have_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
