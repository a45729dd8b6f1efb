/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of an incident's page: a value for each second, and what is unknown is not 0. */
#include "test_view.h"

static json_t *values_of(const char *id, size_t curve)
{
	return json_object_get(
		json_array_get(json_object_get(panel(id), "series"), curve), "values");
}

static void a_value_for_each_second(void **state)
{
	json_t *edges;

	make();
	edges = json_object_get(panel("losses"), "edges_ns");
	assert_int_equal(json_array_size(edges), SECONDS + 1);
	for (size_t i = 0; i <= SECONDS; i++)
		assert_int_equal(number(edges, i), i * NS_PER_S);
	for (size_t k = 0; k < 4; k++)
		assert_int_equal(json_array_size(values_of("losses", k)), SECONDS);
}

static void losses_of_a_second(void **state)
{
	struct ringtap_port_stats *p;

	for (unsigned i = 3; i <= SECONDS; i++) {
		p = (struct ringtap_port_stats *)ringtap_snapshot_port(f.history[i], 0);
		p->imissed += 500;
	}
	make();
	assert_int_equal(number(values_of("losses", 0), 1), 0);
	assert_int_equal(number(values_of("losses", 0), 2), 500);
	assert_int_equal(number(values_of("losses", 0), 3), 0);
	assert_int_equal(number(values_of("losses", 1), 2), 0);
}

/* Not that of the snapshot: what was lost before an event is drawn before it. */
static void losses_have_the_time_of_their_reading(void **state)
{
	json_t *edges;

	for (unsigned k = 0; k < 2; k++)
		((struct ringtap_port_stats *)ringtap_snapshot_port(f.history[3], k))->read_ns -=
			300 * MS;
	make();
	edges = json_object_get(panel("losses"), "edges_ns");
	assert_int_equal(number(edges, 2), 2 * NS_PER_S);
	assert_int_equal(number(edges, 3), 2700 * MS);
	assert_int_equal(number(edges, 4), 4 * NS_PER_S);
	assert_int_equal(number(json_object_get(panel("latency"), "edges_ns"), 3), 3 * NS_PER_S);
}

static void a_driver_that_was_not_read_is_unknown(void **state)
{
	for (unsigned k = 0; k < 2; k++) {
		struct ringtap_port_stats *p =
			(struct ringtap_port_stats *)ringtap_snapshot_port(f.history[2], k);

		p->read_ns = ringtap_snapshot_port(f.history[1], k)->read_ns;
	}
	make();
	assert_true(json_is_null(json_array_get(values_of("losses", 0), 1)));
}

static void the_threshold_of_a_latency(void **state)
{
	json_t *limit;

	trigger = (struct trigger){.text = "p99 > 2us", .kind = TRIGGER_P99, .threshold = 2000};
	make();
	limit = json_object_get(panel("latency"), "limit");
	assert_string_equal(text(limit, "name"), "p99 > 2us");
	assert_float_equal(json_number_value(json_object_get(limit, "value")), 2000, 1e-9);
	assert_true(json_number_value(json_array_get(values_of("latency", 2), 1)) > 100);
}

static void the_free_buffers_of_a_pool(void **state)
{
	struct ringtap_pool_stats *p =
		(struct ringtap_pool_stats *)ringtap_snapshot_pool(f.history[2], 0);

	p->available = 1024;
	((struct ringtap_pool_stats *)ringtap_snapshot_pool(f.history[3], 0))->available =
		UINT32_MAX;
	trigger = (struct trigger){
		.text = "pool < 10%", .kind = TRIGGER_POOL, .threshold = 10, .percent = true};
	incident.event.to_ns = f.history[1]->taken_ns + 700 * MS;
	incident.event.value = 9;
	strcpy(incident.event.where, "mb_pool_0");
	make();
	/* A reading tells nothing about the time before it, but the condition has one of its own.
	 */
	assert_float_equal(
		json_number_value(json_array_get(values_of("pools", 0), 1)), 3071 / 4095., 1e-6);
	assert_float_equal(json_number_value(json_array_get(values_of("pools", 0), 2)), 0.09, 1e-9);
	assert_int_equal(number(json_object_get(panel("pools"), "edges_ns"), 2), 1700 * MS);
	assert_float_equal(
		json_number_value(json_array_get(values_of("pools", 0), 3)), 1024 / 4095., 1e-6);
	assert_int_equal(number(json_object_get(panel("pools"), "edges_ns"), 3), 2000 * MS);
	assert_true(json_is_null(json_array_get(values_of("pools", 0), 4)));
	assert_float_equal(json_number_value(json_object_get(
				   json_object_get(panel("pools"), "limit"), "value")),
		0.1, 1e-9);
}

static void the_fullest_sample_of_a_ring(void **state)
{
	struct ringtap_ring_stats *r =
		(struct ringtap_ring_stats *)ringtap_snapshot_ring(f.history[2], 0);

	r->samples += 2;
	r->recent[1] = 1000;
	((struct ringtap_ring_stats *)ringtap_snapshot_ring(f.history[3], 0))->gone = true;
	trigger = (struct trigger){
		.text = "ring > 80%", .kind = TRIGGER_RING, .threshold = 80, .percent = true};
	make();
	assert_float_equal(
		json_number_value(json_array_get(values_of("rings", 0), 0)), 256 / 1023., 1e-6);
	assert_float_equal(
		json_number_value(json_array_get(values_of("rings", 0), 1)), 1000 / 1023., 1e-6);
	assert_true(json_is_null(json_array_get(values_of("rings", 0), 2)));
	assert_float_equal(json_number_value(json_object_get(
				   json_object_get(panel("rings"), "limit"), "value")),
		0.8, 1e-9);
}

static void put_xstat(unsigned second, uint64_t value)
{
	struct ringtap_xstat_stats *x =
		(struct ringtap_xstat_stats *)ringtap_snapshot_xstat(f.history[second], 1);

	f.history[second]->xstat_count = 2;
	*x = (struct ringtap_xstat_stats){.name = "rx_crc",
		.port = 1,
		.value = value,
		.read_ns = ringtap_snapshot_port(f.history[second], 1)->read_ns};
}

/* Only that of the condition. */
static void the_xstat_of_a_condition(void **state)
{
	static const uint64_t values[SECONDS + 1] = {0, 100, 400, 3, 3};

	make();
	assert_null(panel("xstat"));
	json_decref(document);
	for (unsigned i = 0; i <= SECONDS; i++)
		put_xstat(i, values[i]);
	trigger = (struct trigger){.text = "xstat rx_crc > 50/s",
		.kind = TRIGGER_XSTAT,
		.threshold = 50,
		.rate = true};
	strcpy(trigger.object, "rx_crc");
	make();
	assert_string_equal(text(panel("xstat"), "title"), "rx_crc, by port");
	assert_int_equal(json_array_size(json_object_get(panel("xstat"), "series")), 1);
	assert_string_equal(
		text(json_array_get(json_object_get(panel("xstat"), "series"), 0), "name"), "p1");
	assert_float_equal(json_number_value(json_array_get(values_of("xstat", 0), 1)), 300, 1e-6);
	assert_true(json_is_null(json_array_get(values_of("xstat", 0), 2))); /* was reset */
	assert_float_equal(json_number_value(json_array_get(values_of("xstat", 0), 3)), 0, 0);
	assert_float_equal(json_number_value(json_object_get(
				   json_object_get(panel("xstat"), "limit"), "value")),
		50, 1e-9);
}

static struct ringtap_device_stat devices[SECONDS + 1][1];

static void the_statistic_of_a_device(void **state)
{
	for (unsigned i = 0; i <= SECONDS; i++) {
		devices[i][0] = (struct ringtap_device_stat){.device = "dma0",
			.name = "errors",
			.part = RINGTAP_PART_CHANNEL,
			.number = 1,
			.value = 10 * i,
			.read_ns = ringtap_snapshot_port(f.history[i], 1)->read_ns};
		f.history[i]->device_stat_count = 1;
		f.history[i]->device_stats =
			(struct ringtap_array){devices[i], sizeof(devices[i][0])};
	}
	trigger = (struct trigger){.text = "device dma0 errors > 5", .kind = TRIGGER_DEVICE};
	strcpy(trigger.object, "dma0 errors");
	make();
	assert_string_equal(text(panel("device"), "title"), "dma0 errors");
	assert_string_equal(
		text(json_array_get(json_object_get(panel("device"), "series"), 0), "name"),
		"dma0, channel 1");
	assert_float_equal(json_number_value(json_array_get(values_of("device", 0), 1)), 10, 1e-6);
	assert_null(json_object_get(panel("device"), "limit")); /* it is a number, not a rate */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_value_for_each_second),
		CASE(losses_of_a_second),
		CASE(losses_have_the_time_of_their_reading),
		CASE(a_driver_that_was_not_read_is_unknown),
		CASE(the_threshold_of_a_latency),
		CASE(the_free_buffers_of_a_pool),
		CASE(the_fullest_sample_of_a_ring),
		CASE(the_xstat_of_a_condition),
		CASE(the_statistic_of_a_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
