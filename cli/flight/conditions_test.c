/* SPDX-License-Identifier: BSD-3-Clause */
/* Each kind of condition between two snapshots, on either side of its threshold, and what it says.
 */
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "measure/fake_monitor.h"
#include "common/test_now.h"
#include "trigger.h"

static struct fake_app *app;
static struct ringtap_snapshot *from, *to;
static struct span span;
static struct event e;

static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	app = &fake_apps[0];
	from = fake_snapshot(app, 0);
	rt_sleep_ns(NS_PER_S);
	to = fake_snapshot(app, NS_PER_S);
	span = (struct span){.from = from, .to = to, .seconds = 1, .tsc_hz = 1e9};
	return 0;
}

static int end(void **state)
{
	ringtap_snapshot_free(from);
	ringtap_snapshot_free(to);
	fake_apps_end();
	return 0;
}

/* The entries of a snapshot, to be changed. */
#define PORT(f, i)   ((struct ringtap_port_stats *)ringtap_snapshot_port(f, i))
#define THREAD(f, i) ((struct ringtap_thread_stats *)ringtap_snapshot_thread(f, i))
#define PAIR(f, i)   ((struct ringtap_pair_stats *)ringtap_snapshot_pair(f, i))
#define POOL(f, i)   ((struct ringtap_pool_stats *)ringtap_snapshot_pool(f, i))
#define RING(f, i)   ((struct ringtap_ring_stats *)ringtap_snapshot_ring(f, i))
#define XSTAT(f, i)  ((struct ringtap_xstat_stats *)ringtap_snapshot_xstat(f, i))
#define GAP(f, i)    ((struct ringtap_gap *)ringtap_thread_gap(THREAD(f, 0), i))
#define BURST(f, i)  ((struct ringtap_microburst *)ringtap_thread_microburst(THREAD(f, 0), i))

static struct trigger parsed(const char *text)
{
	struct trigger t = {0};

	assert_int_equal(trigger_parse(&t, text), 0);
	return t;
}

static bool met(const char *text)
{
	struct trigger t = parsed(text);

	e = (struct event){0};
	return trigger_check(&t, &span, &e);
}

static void assert_met(const char *text, const char *where, double value)
{
	assert_true(met(text));
	assert_string_equal(e.where, where);
	assert_float_equal(e.value, value, 1e-6 * value);
}

/* ---- counters of drivers */

static void counters(void **state)
{
	PORT(to, 0)->imissed = 10;
	PORT(to, 0)->rx_nombuf = 20;
	PORT(to, 1)->oerrors = 30;
	PORT(to, 1)->opackets = 0;
	assert_met("missed", "p0", 10);
	assert_met("no-mbuf > 19", "p0", 20);
	assert_met("errors > 29", "p1", 30);
	assert_met("refused > 999000", "p1", 1000000);
	assert_false(met("missed > 10"));
	assert_false(met("no-mbuf > 20"));
	assert_false(met("errors > 30"));
	assert_false(met("refused > 1000000"));
}

static void rates_are_by_the_time_between_readings(void **state)
{
	PORT(to, 0)->imissed = 10;
	PORT(to, 0)->read_ns = PORT(from, 0)->read_ns + NS_PER_S / 2;
	assert_met("missed > 19/s", "p0", 20);
	assert_false(met("missed > 20/s"));
}

static void the_worst_port_is_named(void **state)
{
	PORT(to, 0)->imissed = 10;
	PORT(to, 1)->imissed = 11;
	assert_met("missed", "p1", 11);
	PORT(to, 0)->imissed = 12;
	assert_met("missed", "p0", 12);
}

static void the_event_is_between_readings_of_the_driver(void **state)
{
	PORT(to, 0)->imissed = 10;
	PORT(to, 0)->read_ns = 77;
	PORT(from, 0)->read_ns = 66;
	assert_true(met("missed"));
	assert_int_equal(e.from_ns, 66);
	assert_int_equal(e.to_ns, 77);
}

static void a_port_that_has_appeared_counts_from_its_beginning(void **state)
{
	PORT(to, 1)->imissed = 10;
	from->port_count = 1;
	assert_false(met("missed"));
}

static void names_of_ports_are_printable(void **state)
{
	PORT(to, 0)->imissed = 10;
	strcpy(PORT(to, 0)->name, "a\x1b[31m");
	assert_met("missed", "a?[31m", 10);
}

static void counters_that_were_not_read_again_are_unknown(void **state)
{
	struct trigger t = parsed("missed"), gap = parsed("gap > 1ms");

	assert_true(trigger_known(&t, &span));
	PORT(to, 0)->read_ns = PORT(from, 0)->read_ns;
	assert_true(trigger_known(&t, &span));
	PORT(to, 1)->read_ns = PORT(from, 1)->read_ns;
	assert_false(trigger_known(&t, &span));
	assert_true(trigger_known(&gap, &span));
}

/* ---- latency */

static uint64_t *buckets(struct ringtap_snapshot *f)
{
	return (uint64_t *)PAIR(f, 0)->bucket;
}

/* The bucket that has a value, in cycles, which are nanoseconds here. */
static uint32_t bucket_of(uint64_t ns)
{
	uint64_t width;
	uint32_t i = 0;

	while (ringtap_latency_low(i + 1, &width) <= ns)
		i++;
	return i;
}

static void one_slow_packet(void **state)
{
	uint64_t width, low = ringtap_latency_low(bucket_of(5000000), &width);

	buckets(to)[bucket_of(5000000)] = 1;
	PAIR(to, 0)->count++;
	assert_met("latency > 2ms", "p1", (double)low);
	/* Its reception is in the event, and so are the packets before that. */
	assert_in_range(from->taken_ns - e.from_ns, low + width, 1.05 * low);
	assert_int_equal(e.to_ns, to->taken_ns);
	assert_false(met("latency > 6ms"));
	/* It was there before. */
	buckets(from)[bucket_of(5000000)] = 1;
	assert_false(met("latency > 2ms"));
}

static void percentiles(void **state)
{
	memset(buckets(to), 0, ringtap_latency_buckets() * sizeof(uint64_t));
	buckets(to)[bucket_of(1000)] = 600;
	buckets(to)[bucket_of(10000)] = 350;
	buckets(to)[bucket_of(100000)] = 45;
	buckets(to)[bucket_of(1000000)] = 5;
	PAIR(to, 0)->count = 1000;
	assert_true(met("p50 > 900ns"));
	assert_false(met("p50 > 1100ns"));
	assert_true(met("p90 > 9us"));
	assert_false(met("p90 > 11us"));
	assert_true(met("p99 > 90us"));
	assert_false(met("p99 > 110us"));
	assert_true(met("p999 > 900us"));
	assert_false(met("p999 > 1100us"));
	assert_string_equal((met("p99 > 90us"), e.where), "p1");
	assert_int_equal(e.from_ns, from->taken_ns);
	assert_int_equal(e.to_ns, to->taken_ns);
}

static void histograms_that_began_again_say_nothing(void **state)
{
	buckets(to)[bucket_of(5000000)] = 1;
	to->switched = 1;
	assert_false(met("latency > 2ms"));
	assert_false(met("p999 > 1ns"));
}

/* ---- gaps and busy periods */

static void put_gap(
	struct ringtap_snapshot *f, uint32_t i, uint64_t start_ns, uint64_t ns, uint32_t packets)
{
	*GAP(f, i) = (struct ringtap_gap){.start_ns = start_ns, .ns = ns, .packets = packets};
	if (THREAD(f, 0)->gap_count <= i)
		THREAD(f, 0)->gap_count = i + 1;
}

static void gaps_with_and_without_work(void **state)
{
	put_gap(to, 0, to->taken_ns - 900000, 300000, 32);
	put_gap(to, 1, to->taken_ns - 500000, 400000, 0);
	assert_met("gap > 200us", "lcore 1 (dpdk-worker1, 4712)", 300000);
	assert_int_equal(e.from_ns, to->taken_ns - 900000);
	assert_int_equal(e.to_ns, to->taken_ns - 600000);
	assert_met("idle-gap > 200us", "lcore 1 (dpdk-worker1, 4712)", 400000);
	assert_false(met("gap > 300us"));
	assert_false(met("idle-gap > 400us"));
}

static void the_longest_gap_is_the_event(void **state)
{
	put_gap(to, 0, to->taken_ns - 900000, 300000, 32);
	put_gap(to, 1, to->taken_ns - 500000, 400000, 32);
	assert_met("gap > 200us", "lcore 1 (dpdk-worker1, 4712)", 400000);
}

/* The clock line that converts their times is replaced: they move a little. */
static void a_gap_that_was_there_is_not_new(void **state)
{
	put_gap(from, 0, from->taken_ns - 900000, 300000, 32);
	put_gap(to, 0, from->taken_ns - 900000 + 2170, 300000, 32);
	assert_false(met("gap > 200us"));
	put_gap(to, 0, from->taken_ns - 900000 + 2172, 300000, 32);
	assert_true(met("gap > 200us"));
}

/* One that is shown again since worse ones are too old by now. */
static void a_gap_that_came_back_is_not_new(void **state)
{
	put_gap(to, 0, from->taken_ns - NS_PER_S - 300001, 300000, 32);
	assert_false(met("gap > 200us"));
	put_gap(to, 0, from->taken_ns - NS_PER_S - 300000, 300000, 32);
	assert_true(met("gap > 200us"));
}

static void gaps_of_a_thread_that_is_new(void **state)
{
	put_gap(to, 0, to->taken_ns - 900000, 300000, 32);
	from->thread_count = 0;
	assert_true(met("gap > 200us"));
}

static void put_burst(struct ringtap_snapshot *f, uint32_t i, uint64_t start_ns, uint64_t packets)
{
	*BURST(f, i) =
		(struct ringtap_microburst){.start_ns = start_ns, .ns = 100000, .packets = packets};
	if (THREAD(f, 0)->microburst_count <= i)
		THREAD(f, 0)->microburst_count = i + 1;
}

static void busy_periods(void **state)
{
	put_burst(to, 0, to->taken_ns - 900000, 500);
	put_burst(to, 1, to->taken_ns - 500000, 20000);
	put_burst(to, 2, to->taken_ns - 200000, 600);
	assert_met("burst > 10000", "lcore 1 (dpdk-worker1, 4712)", 20000);
	assert_int_equal(e.from_ns, to->taken_ns - 500000);
	assert_int_equal(e.to_ns, to->taken_ns - 400000);
	assert_false(met("burst > 20000"));
	put_burst(from, 0, to->taken_ns - 500000, 15000);
	assert_met("burst > 400", "lcore 1 (dpdk-worker1, 4712)", 600);
}

static void busy_periods_that_came_back_are_not_new(void **state)
{
	put_burst(to, 0, from->taken_ns - NS_PER_S - 100001, 500);
	assert_false(met("burst > 1"));
	put_burst(to, 0, from->taken_ns - NS_PER_S - 100000, 500);
	assert_true(met("burst > 1"));
	from->thread_count = 0;
	assert_true(met("burst > 1"));
}

/* ---- pools */

static void levels_of_pools(void **state)
{
	POOL(to, 0)->available = 409;
	assert_met("pool < 410", "mb_pool_0", 409);
	assert_met("pool < 10%", "mb_pool_0", 100 * 409.0 / 4095);
	assert_false(met("pool < 409"));
	assert_false(met("pool < 9%"));
	POOL(to, 0)->gone = true;
	assert_false(met("pool < 410"));
}

static void the_emptiest_pool_is_named(void **state)
{
	*POOL(to, 1) = *POOL(to, 0);
	strcpy(POOL(to, 1)->name, "small");
	to->pool_count = 2;
	POOL(to, 1)->available = 100;
	assert_met("pool < 4096", "small", 100);
	POOL(to, 0)->available = 99;
	assert_met("pool < 4096", "mb_pool_0", 99);
	POOL(to, 0)->size = 0; /* not read yet */
	assert_met("pool < 4096", "small", 100);
}

static bool blind(const char *text)
{
	struct trigger t = parsed(text);

	return trigger_blind(&t, to);
}

static void levels_that_are_unknown_meet_nothing(void **state)
{
	assert_false(blind("pool < 10%"));
	POOL(to, 0)->available = UINT32_MAX;
	assert_true(blind("pool < 10%"));
	assert_false(met("pool < 4294967295"));
	*POOL(to, 1) = *POOL(to, 0);
	to->pool_count = 2;
	assert_true(blind("pool < 10%"));
	POOL(to, 1)->available = 7;
	assert_false(blind("pool < 10%"));
	POOL(to, 1)->gone = true;
	assert_true(blind("pool < 10%"));
	to->pool_count = 0;
	assert_true(blind("pool < 10%"));
	assert_false(blind("gap > 1ms"));
}

/* ---- rings */

static void put_samples(struct ringtap_snapshot *f, uint32_t i, uint64_t count, uint32_t last)
{
	memset(RING(f, i)->recent, 0, sizeof(RING(f, i)->recent));
	RING(f, i)->samples = count;
	RING(f, i)->used = RING(f, i)->recent[0] = last;
}

static void levels_of_rings(void **state)
{
	put_samples(from, 0, 10, 0);
	put_samples(to, 0, 12, 512);
	assert_met("ring > 511", "rx_to_worker", 512);
	assert_met("ring rx_to_worker > 50%", "rx_to_worker", 100 * 512.0 / 1023);
	assert_false(met("ring > 512"));
	assert_false(met("ring > 51%"));
	assert_false(met("ring rx_to > 511"));
	assert_false(met("ring rx_to_worker2 > 511"));
	RING(to, 0)->gone = true;
	assert_false(met("ring > 511"));
}

/* It may have emptied by the time of the snapshot. */
static void the_fullest_sample_since_the_last_snapshot_counts(void **state)
{
	put_samples(from, 0, 10, 0);
	put_samples(to, 0, 12, 3);
	RING(to, 0)->recent[1] = 900;
	RING(to, 0)->recent[2] = 1000; /* before the first snapshot */
	assert_met("ring > 80%", "rx_to_worker", 100 * 900.0 / 1023);
	assert_false(met("ring > 900"));
	put_samples(from, 0, 12, 3);
	assert_met("ring > 2", "rx_to_worker", 3); /* not sampled again */
}

static void the_fullest_ring_is_named(void **state)
{
	put_samples(to, 0, 12, 300);
	*RING(to, 1) = *RING(to, 0);
	strcpy(RING(to, 1)->name, "to > tx");
	to->ring_count = 2;
	put_samples(to, 1, 12, 400);
	assert_met("ring > 1", "to > tx", 400);
	assert_met("ring to > tx > 1", "to > tx", 400);
	assert_met("ring rx_to_worker > 1", "rx_to_worker", 300);
	RING(to, 1)->capacity = 0; /* not complete */
	assert_met("ring > 1", "rx_to_worker", 300);
	put_samples(to, 0, 0, 300); /* not sampled yet */
	assert_false(met("ring > 1"));
}

/* ---- xstats */

static void put_xstat(struct ringtap_snapshot *f, uint32_t i, uint64_t read_ns, uint64_t value)
{
	*XSTAT(f, i) = (struct ringtap_xstat_stats){.port = i, .read_ns = read_ns, .value = value};
	strcpy(XSTAT(f, i)->name, "rx out > in");
	f->xstat_count = f->xstat_count > i ? f->xstat_count : i + 1;
}

static void xstats_between_two_readings(void **state)
{
	put_xstat(from, 0, 7 * NS_PER_S, 100);
	put_xstat(to, 0, 7 * NS_PER_S + NS_PER_S / 2, 160);
	assert_met("xstat rx out > in > 59", "p0", 60);
	assert_int_equal(e.from_ns, 7 * NS_PER_S);
	assert_int_equal(e.to_ns, 7 * NS_PER_S + NS_PER_S / 2);
	assert_met("xstat rx out > in > 119/s", "p0", 120);
	assert_false(met("xstat rx out > in > 60"));
	assert_false(met("xstat rx out > in > 120/s"));
	assert_false(met("xstat rx out > 1"));
	put_xstat(from, 1, 7 * NS_PER_S, 0);
	put_xstat(to, 1, 8 * NS_PER_S, 61);
	assert_met("xstat rx out > in > 5", "p1", 61);
	assert_met("xstat rx out > in > 5/s", "p0", 120);
	XSTAT(to, 0)->gone = true;
	assert_met("xstat rx out > in > 5/s", "p1", 61);
}

static void xstats_that_were_not_read_again_or_fell(void **state)
{
	struct trigger t = parsed("xstat rx out > in > 0");

	assert_false(trigger_check(&t, &span, &e) || trigger_known(&t, &span));
	put_xstat(to, 0, 8 * NS_PER_S, 160);
	assert_false(trigger_check(&t, &span, &e) || trigger_known(&t, &span)); /* new */
	put_xstat(from, 0, 8 * NS_PER_S, 100);
	assert_false(trigger_check(&t, &span, &e) || trigger_known(&t, &span)); /* not read again */
	put_xstat(from, 0, 7 * NS_PER_S, 161);
	assert_false(trigger_check(&t, &span, &e) || trigger_known(&t, &span)); /* reset */
	put_xstat(from, 0, 7 * NS_PER_S, 160);
	assert_false(trigger_check(&t, &span, &e));
	assert_true(trigger_known(&t, &span));
}

/* ---- verdicts */

static bool judged(const char *text)
{
	static struct diagnosis d = {
		.verdict = {{.id = VERDICT_POOL_EXHAUSTED, .grade = GRADE_FAULT, .where = "mb"},
			{.id = VERDICT_TOO_SLOW, .grade = GRADE_FAULT},
			{.id = VERDICT_SATURATED, .grade = GRADE_NOTE}},
		.count = 3};
	struct trigger t = parsed(text);

	return trigger_check_doctor(&t, &d, &e);
}

static void verdicts_by_name(void **state)
{
	assert_true(judged("doctor: too_slow"));
	assert_string_equal(e.where, "too_slow");
	assert_true(judged("doctor: saturated"));
	assert_true(judged("doctor"));
	assert_string_equal(e.where, "pool_exhausted: mb");
	assert_false(judged("doctor: healthy"));
}

/* ---- what conditions need, and what is printed */

static void collectors(void **state)
{
	static const struct {
		const char *text;
		unsigned collectors;
		bool level;
	} rows[] = {
		{"missed", 0, false},
		{"refused", RINGTAP_POLLS, false},
		{"latency > 1ms", RINGTAP_LATENCY | RINGTAP_GAPS, false},
		{"p50 > 1ms", RINGTAP_LATENCY, false},
		{"p999 > 1ms over 5s", RINGTAP_LATENCY, true},
		{"gap > 1ms", RINGTAP_GAPS, false},
		{"idle-gap > 1ms", RINGTAP_GAPS, false},
		{"burst > 1", RINGTAP_BUSY, false},
		{"pool < 5%", RINGTAP_POOLS, true},
		{"ring > 5%", RINGTAP_POOLS, true},
		{"xstat a > 5", RINGTAP_XSTATS, false},
		{"xstat a > 5/s over 5s", RINGTAP_XSTATS, true},
		{"doctor", JUDGE_COLLECTORS, true},
		{"usdt: a:b", 0, false},
		{"exit", 0, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct trigger t = parsed(rows[i].text);

		assert_int_equal(trigger_collectors(&t), rows[i].collectors);
		assert_int_equal(trigger_is_level(&t), rows[i].level);
	}
}

static void values(void **state)
{
	static const struct {
		const char *text;
		double value;
		const char *shown;
	} rows[] = {
		{"missed > 5", 12, "12 packets"},
		{"missed > 5/s", 1499.6, "1500 packets/s"},
		{"gap > 1us", 61234, "61.2 us"},
		{"p99 > 1us", 2.5e9, "2.5 s"},
		{"pool < 10%", 9.9, "10 %"},
		{"pool < 512", 511, "511 objects"},
		{"ring a > 10%", 10.1, "10 %"},
		{"ring a > 512", 513, "513 objects"},
		{"xstat a > 5", 12, "12"},
		{"xstat a > 5/s", 12.4, "12/s"},
		{"burst > 1", 20000, "20000 packets"},
		{"doctor", 1, ""},
		{"exit", 1, ""},
	};
	char text[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct trigger t = parsed(rows[i].text);

		trigger_value(&t, rows[i].value, text, sizeof(text));
		assert_string_equal(text, rows[i].shown);
	}
}

static void what_is_parsed(void **state)
{
	struct trigger t = parsed("  missed  >  1000/s  over 5s");
	uint32_t n;

	assert_int_equal(t.kind, TRIGGER_MISSED);
	assert_float_equal(t.threshold, 1000, 0);
	assert_true(t.rate && !t.percent);
	assert_int_equal(t.over_ns, 5 * NS_PER_S);
	t = parsed("pool<10%");
	assert_true(t.percent && !t.rate);
	t = parsed(" ring  rx over 2  >80% ");
	assert_string_equal(t.object, "rx over 2");
	assert_float_equal(t.threshold, 80, 0);
	assert_true(t.percent && !t.over_ns);
	t = parsed("ring>512");
	assert_string_equal(t.object, "");
	t = parsed("p99 > 50us over 100s");
	assert_float_equal(t.threshold, 50000, 0);
	assert_int_equal(t.over_ns, 100 * NS_PER_S);
	t = parsed("usdt: app:mark");
	assert_string_equal(t.provider, "app");
	assert_string_equal(t.event, "mark");
	t = parsed("doctor");
	assert_int_equal(t.verdict, -1);
	t = parsed("missed over 1s");
	assert_float_equal(t.threshold, 0, 0);
	t = parsed("packet: tcp[tcpflags] & tcp-rst != 0");
	assert_int_equal(trigger_compile(&t, false, RINGTAP_TAGS_ANY), 0);
	n = t.filter.len;
	filter_free(&t.filter);
	assert_int_equal(trigger_compile(&t, false, RINGTAP_TAGS_AS_IS), 0);
	assert_in_range(t.filter.len, 1, n - 1);
	filter_free(&t.filter);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(counters),
		CASE(rates_are_by_the_time_between_readings),
		CASE(the_worst_port_is_named),
		CASE(the_event_is_between_readings_of_the_driver),
		CASE(a_port_that_has_appeared_counts_from_its_beginning),
		CASE(names_of_ports_are_printable),
		CASE(counters_that_were_not_read_again_are_unknown),
		CASE(one_slow_packet),
		CASE(percentiles),
		CASE(histograms_that_began_again_say_nothing),
		CASE(gaps_with_and_without_work),
		CASE(the_longest_gap_is_the_event),
		CASE(a_gap_that_was_there_is_not_new),
		CASE(a_gap_that_came_back_is_not_new),
		CASE(gaps_of_a_thread_that_is_new),
		CASE(busy_periods),
		CASE(busy_periods_that_came_back_are_not_new),
		CASE(levels_of_pools),
		CASE(the_emptiest_pool_is_named),
		CASE(levels_that_are_unknown_meet_nothing),
		CASE(levels_of_rings),
		CASE(the_fullest_sample_since_the_last_snapshot_counts),
		CASE(the_fullest_ring_is_named),
		CASE(xstats_between_two_readings),
		CASE(xstats_that_were_not_read_again_or_fell),
		CASE(verdicts_by_name),
		CASE(collectors),
		CASE(values),
		CASE(what_is_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
