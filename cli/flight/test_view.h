/* SPDX-License-Identifier: BSD-3-Clause */
/* The document of the incident of test_incident.h. */
#ifndef RINGTAP_CLI_FLIGHT_TEST_VIEW_H
#define RINGTAP_CLI_FLIGHT_TEST_VIEW_H

#include "packet_rows.h"
#include "test_incident.h"
#include "view.h"

#define MS      UINT64_C(1000000)
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_view, end_view)

static json_t *document;

static int begin_view(void **state)
{
	document = NULL;
	return begin(state);
}

static int end_view(void **state)
{
	json_decref(document);
	packet_rows_free(incident.rows);
	trigger = (struct trigger){.text = "gap > 50us"};
	return end(state);
}

static void make(void)
{
	document = incident_view(&incident, 0, f.history_count - 1, NULL);
	assert_non_null(document);
}

static json_t *find(const char *list, const char *key, const char *value)
{
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(document, list), i,
		e) if (!strcmp(json_string_value(json_object_get(e, key)), value)) return e;
	return NULL;
}

static json_t *panel(const char *id)
{
	return find("panels", "id", id);
}

__attribute__((unused)) static json_int_t number(json_t *list, size_t i)
{
	assert_true(i < json_array_size(list));
	return json_integer_value(json_array_get(list, i));
}

__attribute__((unused)) static const char *text(json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

#endif
