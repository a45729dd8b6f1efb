/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates and metrics of snapshots that the tests make. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "metrics.h"

static struct ringtap_queue_stats queues[2][3];
static struct ringtap_thread_stats threads[2][1];
static struct ringtap_port_stats ports[2][1];
static struct ringtap_snapshot snapshots[2];
static struct watched app;

/* Two snapshots a second apart: one port, one thread, RX queues 0 and 1 and TX queue 0. */
static int setup(void **state)
{
	memset(queues, 0, sizeof(queues));
	memset(threads, 0, sizeof(threads));
	memset(ports, 0, sizeof(ports));
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
		ports[k][0].read_ns = (1000 + k) * NS_PER_S;
	}
	app = (struct watched){
		.name = (char *)"app", .now = &snapshots[1], .mark = &snapshots[0], .tsc_hz = 1e9};
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
	/* An earlier request of an entry without calls does not count. */
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
	rates_thread(&s, 0, &r);
	assert_true(fabs(r.busy - 0.8) < 1e-9);
	assert_true(fabs(r.seen - 0.4) < 1e-9);
	assert_true(fabs(r.cycles_per_packet - 10000) < 1e-9);
	assert_true(fabs(r.wait - 0.25) < 1e-9);
	/* A wait that began before the interval, and a reading that took a moment. */
	threads[1][0].wait_ns = 3 * NS_PER_S;
	threads[1][0].cpu_ns = 2 * NS_PER_S + 1000;
	rates_thread(&s, 0, &r);
	assert_true(r.wait == 1 && r.cpu == 1);
	/* Another thread has the slot now: the kernel's values for the old one do not apply. */
	threads[1][0].generation = 7;
	rates_thread(&s, 0, &r);
	assert_true(isnan(r.wait));
}

/* 1000 s … 1001 s */
static void gaps_count_where_they_end(void **state)
{
	struct ringtap_gap gaps[] = {{.start_ns = 999300000000, .ns = 800000000, .packets = 1},
		{.start_ns = 999300000000, .ns = 700000000}, /* in the interval before */
		{.start_ns = 1000600000000, .ns = 400000000},
		{.start_ns = 1000600000000, .ns = 400000001, .packets = 1}, /* in the next one */
		{.start_ns = 999000000000, .ns = 500000000, .packets = 1, .open = true}};
	struct ringtap_microburst many[] = {
		{.start_ns = 999900000000, .ns = 100000000, .packets = 9},
		{.start_ns = 999900000000, .ns = 100000001, .packets = 7}};
	struct subject thread, x;
	struct thread_rates r;
	struct span s;

	threads[1][0].gaps = (struct ringtap_array){gaps, sizeof(gaps[0])};
	threads[1][0].microbursts = (struct ringtap_array){many, sizeof(many[0])};
	threads[1][0].gap_count = 5;
	threads[1][0].microburst_count = 2;
	assert_true(span_of(&app, &s));
	rates_thread(&s, 0, &r);
	assert_true(r.worst_gap_ns == 8e8 && r.worst_idle_gap_ns == 4e8);
	assert_int_equal(r.largest_microburst, 7);
	subject_make(&thread, &s, RT_OBJECT_GAP, 0, true);
	assert_true(subject_gap(&x, &thread, 0) && x.gap == &gaps[0]);
	assert_true(subject_gap(&x, &thread, 1) && x.gap == &gaps[2]);
	assert_true(subject_gap(&x, &thread, 2) && x.gap == &gaps[4]);
	assert_true(subject_gap(&x, &thread, 3) && x.microburst == &many[1]);
	assert_false(subject_gap(&x, &thread, 4));
	/* Ended since it was shown to last, or ended while the snapshot was taken. */
	s.to = &(struct ringtap_snapshot){.taken_ns = 1000050000000};
	assert_false(rates_has_gap(&s, &gaps[0]));
	s.to = &snapshots[1];
	s.from = &(struct ringtap_snapshot){.taken_ns = 1000050000000};
	assert_true(rates_has_gap(&s, &gaps[0]));
}

static void unsent_only_where_it_is_certain(void **state)
{
	struct driver_counts d;
	struct span s;

	assert_true(span_of(&app, &s));
	ports[0][0].tx_after = 100;
	ports[1][0].tx_before = 950;
	ports[1][0].tx_after = 1000;
	ports[1][0].opackets = 900;
	/* 850 to 1,000 were passed to TX: 900 may be all of them. */
	driver_counts(&s, 0, &d);
	assert_true(d.offered > 0 && d.unsent == 0);
	ports[1][0].opackets = 700;
	driver_counts(&s, 0, &d);
	assert_float_equal(d.unsent, 225, 1e-9);
	/* A burst of a thread that lost its CPU may not have come to the driver. */
	bursts(2, 150, 1);
	driver_counts(&s, 0, &d);
	assert_true(d.unsent == 0);
	ports[1][0].opackets = 699;
	driver_counts(&s, 0, &d);
	assert_float_equal(d.unsent, 226, 1e-9);
	/* The driver's counters began again: 200 packets may have been sent before that, and a
	 * burst more may have been on its way. */
	ports[1][0].epoch = 1;
	ports[1][0].tx_unknown = 200;
	driver_counts(&s, 0, &d);
	assert_true(d.partial && d.unsent == 0 && d.tx_unknown == 200);
	assert_true(isnan(d.opackets) && isnan(d.imissed) && isnan(d.errors));
	ports[1][0].opackets = 349;
	ports[1][0].imissed = 7;
	driver_counts(&s, 0, &d);
	assert_float_equal(d.unsent, 376, 1e-9);
	assert_float_equal(d.imissed, 7, 1e-9);
	/* Not read again yet. */
	ports[1][0].read_ns = ports[0][0].read_ns;
	driver_counts(&s, 0, &d);
	assert_true(isnan(d.seconds) && isnan(d.unsent));
}

static void the_first_reading_begins_an_interval(void **state)
{
	struct driver_counts d;
	struct span s, total;

	assert_true(span_of(&app, &s));
	total = span_total(&app);
	ports[0][0].ipackets = 40;
	ports[1][0].ipackets = 100;
	driver_counts(&s, 0, &d);
	assert_float_equal(d.ipackets, 60, 1e-9);
	assert_float_equal(d.seconds, 1, 1e-9);
	ports[0][0].read_ns = 0;
	driver_counts(&s, 0, &d);
	assert_true(isnan(d.ipackets));
	driver_counts(&total, 0, &d);
	assert_float_equal(d.ipackets / d.seconds, 100, 1e-9);
}

/* The middle of a bucket may lie beyond the maximum. */
static void no_percentile_is_above_the_maximum(void **state)
{
	static uint64_t bucket[RINGTAP_BURSTS * 8];
	static struct ringtap_pair_stats pair = {.bucket = bucket};
	struct metric_value most, found;
	struct latency_rates shown;
	struct subject x;
	uint64_t width = 0, low;
	uint32_t wide = 0;
	struct span s;

	while (width < 8)
		low = ringtap_latency_low(++wide, &width);
	bucket[wide] = pair.count = 4;
	pair.max = low + 1;
	snapshots[1].pairs = (struct ringtap_array){&pair, sizeof(pair)};
	snapshots[1].pair_count = 1;
	assert_true(span_of(&app, &s));
	subject_make(&x, &s, RT_OBJECT_PAIR, 0, true);
	metric_get(&x, RT_M_MAX, false, &most);
	assert_true(most.number > 0);
	for (enum rt_metric_id id = RT_M_P50; id <= RT_M_P999; id++) {
		metric_get(&x, id, false, &found);
		assert_float_equal(found.number, most.number, 0);
	}
	/* As on an incident's page. */
	rates_latency_shown(&s, 0, &shown);
	assert_float_equal(shown.p50_ns, most.number, 0);
	assert_float_equal(shown.p999_ns, most.number, 0);
}

/* ---- xstats */

static double xstat_rate(
	struct ringtap_xstat_stats *from, struct ringtap_xstat_stats *to, double *grown_by)
{
	struct metric_value v;
	struct subject x;
	double seconds;
	struct span s;

	snapshots[0].xstats = (struct ringtap_array){from, sizeof(*from)};
	snapshots[1].xstats = (struct ringtap_array){to, sizeof(*to)};
	snapshots[0].xstat_count = from != NULL;
	snapshots[1].xstat_count = 1;
	assert_true(span_of(&app, &s));
	*grown_by = rates_xstat(&s, 0, &seconds);
	subject_make(&x, &s, RT_OBJECT_XSTAT, 0, true);
	metric_get(&x, RT_M_XSTAT_RATE, false, &v);
	return v.number;
}

/* Between its readings, which are not those of the snapshots. */
static void xstats_grow_between_two_readings(void **state)
{
	struct ringtap_xstat_stats five = {.read_ns = 5 * NS_PER_S, .value = 100},
				   seven = {.read_ns = 7 * NS_PER_S, .value = 400},
				   less = {.read_ns = 7 * NS_PER_S, .value = 99},
				   same = {.read_ns = 7 * NS_PER_S, .value = 100},
				   torn = {.value = 400};
	double n;

	assert_float_equal(xstat_rate(&five, &seven, &n), 150, 1e-9);
	assert_float_equal(n, 300, 0);
	assert_float_equal(xstat_rate(&five, &same, &n), 0, 0);
	assert_float_equal(n, 0, 0);
	assert_true(isnan(xstat_rate(&five, &less, &n)) && isnan(n));
	assert_true(isnan(xstat_rate(&five, &five, &n)) && isnan(n));
	assert_true(isnan(xstat_rate(&torn, &seven, &n)) && isnan(n));
	assert_true(isnan(xstat_rate(&five, &torn, &n)) && isnan(n));
	assert_true(isnan(xstat_rate(NULL, &seven, &n)) && isnan(n));
}

static void assert_xstat_json(uint64_t value, uint64_t read_ns, const char *json)
{
	struct ringtap_xstat_stats stats = {.read_ns = read_ns, .value = value};
	const struct span s = {.from = &snapshots[0], .to = &snapshots[1]};
	json_t *j = json_object();
	struct subject x;
	char *text;

	snapshots[1].xstats = (struct ringtap_array){&stats, sizeof(stats)};
	snapshots[0].xstat_count = 0;
	subject_make(&x, &s, RT_OBJECT_XSTAT, 0, true);
	metrics_json(j, &x, RT_OBJECT_XSTAT, false);
	text = json_dumps(json_object_get(j, "value"), JSON_ENCODE_ANY);
	assert_string_equal(text, json);
	free(text);
	json_decref(j);
}

/* A double has 53 bits of it. */
static void values_of_xstats_are_exact(void **state)
{
	assert_xstat_json((1ull << 53) + 1, 1, "\"9007199254740993\"");
	assert_xstat_json(UINT64_MAX, 1, "\"18446744073709551615\"");
	assert_xstat_json(0, 1, "0");
	assert_xstat_json(5, 0, "null");
}

/* The entries are still there, with old values. */
static void xstats_of_a_collector_that_is_off(void **state)
{
	snapshots[1].xstat_count = 3;
	assert_int_equal(subject_count(&snapshots[1], RT_OBJECT_XSTAT), 0);
	snapshots[1].collectors |= RINGTAP_XSTATS;
	assert_int_equal(subject_count(&snapshots[1], RT_OBJECT_XSTAT), 3);
}

/* ---- metrics */

/* A metric that a view shows or JSON has, and that nothing computes, is always unknown. */
static void every_metric_has_a_value(void **state)
{
	static struct ringtap_pool_stats pool = {
		.name = "p", .ops = "o", .size = 2, .page_bytes = 1};
	static struct ringtap_gap gap = {.start_ns = 1000 * NS_PER_S, .ns = 5, .packets = 1};
	static uint64_t bucket[RINGTAP_BURSTS * 8];
	static struct ringtap_pair_stats pair = {.bucket = bucket};
	const enum rt_metric_object parts[] = {RT_OBJECT_PORT, RT_OBJECT_DRIVER, RT_OBJECT_CALLS,
		RT_OBJECT_QUEUE, RT_OBJECT_THREAD, RT_OBJECT_POOL, RT_OBJECT_PAIR, RT_OBJECT_GAP,
		RT_OBJECT_RING, RT_OBJECT_XSTAT, RT_OBJECT_DEVICE, RT_OBJECT_LCORE};
	static struct ringtap_ring_stats ring = {.name = "r", .capacity = 7, .samples = 1};
	static struct ringtap_xstat_stats xstats[2] = {
		{.name = "x", .read_ns = 1, .value = 5}, {.name = "x", .read_ns = 2, .value = 6}};
	static struct ringtap_device_stat devices[2] = {
		{.read_ns = 1}, {.device = "d", .name = "x", .part = 1, .read_ns = 2}};
	static struct ringtap_lcore_stats lcores[2][4] = {{{0}, {0}, {0}, {.read_ns = 1}},
		{{0}, {0}, {0}, {.read_ns = 2, .total_cycles = 5}}};
	struct span s;

	assert_true(ringtap_latency_buckets() <= sizeof(bucket) / sizeof(bucket[0]));
	bucket[10] = 4;
	pair.count = 4;
	pair.max = 10;
	snprintf(ports[1][0].driver, sizeof(ports[1][0].driver), "net_null");
	snapshots[1].pools = (struct ringtap_array){&pool, sizeof(pool)};
	snapshots[1].pairs = (struct ringtap_array){&pair, sizeof(pair)};
	snapshots[1].rings = (struct ringtap_array){&ring, sizeof(ring)};
	snapshots[0].xstats = (struct ringtap_array){&xstats[0], sizeof(xstats[0])};
	snapshots[1].xstats = (struct ringtap_array){&xstats[1], sizeof(xstats[0])};
	snapshots[0].xstat_count = snapshots[1].xstat_count = snapshots[1].ring_count = 1;
	snapshots[1].pool_count = snapshots[1].pair_count = 1;
	for (unsigned k = 0; k < 2; k++) {
		snapshots[k].device_stats = (struct ringtap_array){&devices[k], sizeof(devices[k])};
		snapshots[k].lcores = (struct ringtap_array){lcores[k], sizeof(lcores[k][0])};
		snapshots[k].device_stat_count = 1;
		snapshots[k].lcore_count = 4;
	}
	threads[1][0].gaps = (struct ringtap_array){&gap, sizeof(gap)};
	threads[1][0].gap_count = 1;
	threads[1][0].busy_cycles = threads[1][0].idle_cycles = 5;
	threads[0][0].read_ns = 1;
	threads[1][0].read_ns = 2;
	threads[1][0].tid = 7;
	bursts(0, 32, 10);
	bursts(0, 0, 10);
	assert_true(span_of(&app, &s));
	for (enum rt_metric_id id = 0; id < RT_M_COUNT; id++) {
		const struct rt_metric *m = &rt_metrics[id];
		struct subject x, gaps;
		struct metric_value v;
		bool part = false;

		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			part |= parts[i] == m->object;
		if (!part || m->type == RT_METRIC_INFO ||
			(m->type == RT_METRIC_HISTOGRAM && !m->key))
			continue;
		subject_make(&x, &s, m->object, m->object == RT_OBJECT_LCORE ? 3 : 0, true);
		if (m->object == RT_OBJECT_GAP) {
			gaps = x;
			assert_true(subject_gap(&x, &gaps, 0));
			assert_false(subject_gap(&gaps, &gaps, 1));
		}
		metric_get(&x, id, false, &v);
		if (isnan(v.number) && !v.text[0] && id != RT_M_MAX_IDLE_GAP &&
			id != RT_M_MAX_MICROBURST && id != RT_M_PORT_MBPS && id != RT_M_PORT_RXD &&
			id != RT_M_PORT_TXD)
			fail_msg("metric %d (%s) has no value", id, m->help);
	}
}

static void names_are_used_once(void **state)
{
	for (enum rt_metric_id a = 0; a < RT_M_COUNT; a++) {
		const struct rt_metric *x = &rt_metrics[a];

		assert_non_null(x->help);
		for (enum rt_metric_id b = 0; b < a; b++) {
			const struct rt_metric *y = &rt_metrics[b];

			if (x->object == y->object && x->key && y->key)
				assert_string_not_equal(x->key, y->key);
			if (x->prometheus && y->prometheus)
				assert_string_not_equal(x->prometheus, y->prometheus);
		}
	}
}

static void names_are_printable(void **state)
{
	struct ringtap_thread_stats t = {.lcore = UINT32_MAX, .tid = 7};
	char buf[THREAD_NAME_LEN], small[4];

	assert_string_equal(thread_name(buf, &t), "thread 7");
	memset(t.name, '\x1b', sizeof(t.name));
	t.name[sizeof(t.name) - 1] = '\0';
	assert_string_equal(thread_name(buf, &t), "thread ??????????????? (7)");
	assert_string_equal(thread_label(buf, &t), "???????????????");
	t.lcore = 127;
	assert_string_equal(thread_name(buf, &t), "lcore 127 (???????????????, 7)");
	assert_string_equal(thread_label(buf, &t), "lcore 127");
	t.tid = 0;
	assert_string_equal(thread_name(buf, &t), "lcore 127 (?????????????\?\?)");
	t.name[0] = '\0';
	assert_string_equal(thread_name(buf, &t), "lcore 127");
	assert_string_equal(printable(small, sizeof(small), "abcdef"), "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(time_goes_on_when_the_clock_is_set_back, setup),
		cmocka_unit_test_setup(tallies_of_queues, setup),
		cmocka_unit_test_setup(shares_of_threads, setup),
		cmocka_unit_test_setup(gaps_count_where_they_end, setup),
		cmocka_unit_test_setup(unsent_only_where_it_is_certain, setup),
		cmocka_unit_test_setup(the_first_reading_begins_an_interval, setup),
		cmocka_unit_test_setup(no_percentile_is_above_the_maximum, setup),
		cmocka_unit_test_setup(xstats_grow_between_two_readings, setup),
		cmocka_unit_test_setup(values_of_xstats_are_exact, setup),
		cmocka_unit_test_setup(xstats_of_a_collector_that_is_off, setup),
		cmocka_unit_test_setup(every_metric_has_a_value, setup),
		cmocka_unit_test(names_are_used_once),
		cmocka_unit_test(names_are_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
