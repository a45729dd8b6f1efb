/* SPDX-License-Identifier: BSD-3-Clause */
/* Intervals of threads, one by one: on the page, in the trace, in the file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pcapng.h"
#include "measure/fake_monitor.h"
#include "test_incident.h"
#include "timeline.h"
#include "view.h"

#define MS  UINT64_C(1000000)
#define GAP RINGTAP_INTERVAL_GAP

static json_t *document;
static char path[] = "/tmp/ringtap-intervals.XXXXXX";

static int begin_logged(void **state)
{
	int fd;

	document = NULL;
	begin(state);
	intervals_on_all();
	memset(path + strlen(path) - 6, 'X', 6);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "packets.", 8), 8);
	close(fd);
	incident.path = path;
	return 0;
}

static int end_logged(void **state)
{
	json_decref(document);
	unlink(path);
	return end(state);
}

static json_t *panel(void)
{
	json_t *e;
	size_t i;

	document = incident_view(&incident, 0, f.history_count - 1, NULL);
	json_array_foreach(json_object_get(document, "panels"), i, e)
	{
		const char *id = json_string_value(json_object_get(e, "id"));

		if (id && !strcmp(id, "threads"))
			return e;
	}
	fail();
	return NULL;
}

static json_t *lane(const char *key)
{
	return json_object_get(json_array_get(json_object_get(panel(), "lanes"), 0), key);
}

static void thousand_gaps_of_a_second_are_all_there(void **state)
{
	json_t *all;

	for (unsigned i = 0; i < 1000; i++)
		log_in(GAP, 2000 * MS + i * MS, 50000, 32);
	all = lane("intervals");
	assert_int_equal(json_array_size(all), 1000);
	for (unsigned i = 0; i < 1000; i++) {
		json_t *gap = json_array_get(all, i);

		assert_int_equal(json_integer_value(json_array_get(gap, 0)), 2000 * MS + i * MS);
		assert_int_equal(json_integer_value(json_array_get(gap, 1)), 50000);
	}
}

/* An interval that the windows have as well is one bar. */
static void what_snapshots_have_is_not_drawn_twice(void **state)
{
	gap_in(2, 1700 * MS, 36 * MS, false);
	burst_in(2, 1800 * MS);
	log_in(GAP, 1700 * MS, 36 * MS, 32);
	log_in(RINGTAP_INTERVAL_BUSY, 1800 * MS, 700000, 123);
	assert_int_equal(json_array_size(lane("intervals")), 2);
}

static void a_gap_that_lasts_is_drawn(void **state)
{
	gap_in(SECONDS, 3000 * MS, 900 * MS, true);
	assert_int_equal(json_array_size(lane("intervals")), 1);
}

/* In the last snapshot it lasted; the log, which is read later, has its end. */
static void a_gap_that_has_just_ended_is_drawn_once(void **state)
{
	json_t *all;

	gap_in(SECONDS, 3000 * MS - 62, 900 * MS, true);
	log_in(GAP, 3000 * MS, 902 * MS, 32);
	all = lane("intervals");
	assert_int_equal(json_array_size(all), 1);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(all, 0), 1)), 902 * MS);
}

/* That one was before it, or is another thread's, or no gap. */
static void a_gap_that_lasts_is_drawn_beside_others(void **state)
{
	gap_in(SECONDS, 3000 * MS, 900 * MS, true);
	log_in(GAP, 2900 * MS, 10 * MS, 32);
	log_in(RINGTAP_INTERVAL_BUSY, 3000 * MS, 700000, 123);
	log_in(GAP, 3000 * MS, 902 * MS, 32);
	f.intervals.kept[2].thread = 77;
	assert_int_equal(json_array_size(lane("intervals")), 3);
}

static void what_does_not_touch_the_window_is_left_out(void **state)
{
	incident.from_ns += 1000 * MS;
	log_in(GAP, 0, 999 * MS, 1);
	log_in(GAP, 0, 1001 * MS, 2);
	log_in(GAP, 5000 * MS, MS, 3);
	assert_int_equal(json_array_size(lane("intervals")), 1);
}

static void a_thread_that_is_not_there_is_left_out(void **state)
{
	log_in(GAP, 0, MS, 1);
	f.intervals.kept[0].thread = 77;
	log_in(GAP, 0, MS, 1);
	assert_int_equal(json_array_size(lane("intervals")), 1);
}

static const char *last_note(void)
{
	json_t *notes = json_object_get(panel(), "notes");

	return json_string_value(json_array_get(notes, json_array_size(notes) - 1));
}

static void of_too_many_the_longest_are_drawn(void **state)
{
	for (unsigned i = 0; i < INTERVALS_SHOWN + 100; i++)
		log_in(GAP, 1000 * MS + i * 100000, 10000 + i, 32);
	assert_non_null(strstr(last_note(), "the 20000 of 10.1 us and more are drawn"));
	json_decref(document);
	assert_int_equal(json_array_size(lane("intervals")), INTERVALS_SHOWN);
}

static void assert_unknown(uint64_t from_ns, uint64_t to_ns)
{
	json_t *unknown = lane("unknown"), *last = json_array_get(unknown, 0);

	assert_int_equal(json_array_size(unknown), 1);
	assert_int_equal(json_integer_value(json_array_get(last, 0)), from_ns);
	assert_int_equal(json_integer_value(json_array_get(last, 1)), to_ns);
}

static void what_was_lost_is_hatched(void **state)
{
	f.intervals.losses[f.intervals.loss_count++] =
		(struct interval_loss){.from_ns = TEST_NOW_REAL_NS + 1000 * MS,
			.to_ns = TEST_NOW_REAL_NS + 1100 * MS,
			.count = 7};
	f.intervals.losses[f.intervals.loss_count++] =
		(struct interval_loss){.from_ns = TEST_NOW_REAL_NS + 9000 * MS,
			.to_ns = TEST_NOW_REAL_NS + 9100 * MS,
			.count = 7};
	assert_unknown(1000 * MS, 1100 * MS);
}

static void time_whose_intervals_were_written_over_is_hatched(void **state)
{
	for (unsigned i = 0; i < INTERVALS_KEPT + 2000; i++)
		log_in(GAP, i * 1000, 10, 32);
	assert_unknown(0, 2 * MS);
}

static void they_are_taken_with_each_snapshot(void **state)
{
	struct ringtap_monitor *mon;
	char why[256];

	assert_int_equal(
		ringtap_monitor_open(&mon, fake_apps[0].dir,
			&(struct ringtap_monitor_options){.size = sizeof(mon)}, why, sizeof(why)),
		0);
	f.mon = mon;
	f.last = f.history[2];
	fake_apps[0].intervals[0] = (struct ringtap_interval){.ns = 5, .kind = GAP};
	fake_apps[0].interval_count = 1;
	intervals_read(&f);
	assert_int_equal(f.intervals.count, 1);
	f.last = f.history[3];
	fake_apps[0].intervals_lost = 9;
	intervals_read(&f);
	assert_int_equal(f.intervals.count, 1);
	assert_int_equal(f.intervals.loss_count, 1);
	assert_int_equal(f.intervals.losses[0].from_ns, f.history[2]->taken_ns);
	assert_int_equal(f.intervals.losses[0].to_ns, f.history[3]->taken_ns);
	f.last = NULL;
	ringtap_monitor_close(mon);
}

/* ---- the file */

/* Blocks behind the packets: their entries by kind. */
static void count_entries(unsigned counts[4])
{
	static uint8_t bytes[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, bytes, sizeof(bytes)), at = 8;

	close(fd);
	memset(counts, 0, 4 * sizeof(*counts));
	while (at < len) {
		struct rt_intervals_head h;
		uint32_t again;

		memcpy(&h, bytes + at, sizeof(h));
		assert_int_equal(h.type, RT_PCAPNG_INTERVALS);
		assert_int_equal(h.version, RT_INTERVALS_VERSION);
		assert_in_range(h.kind, RT_INTERVALS_THREADS, RT_INTERVALS_LOSSES);
		assert_int_equal(h.total, sizeof(h) + h.count * h.entry_bytes + 4);
		assert_true(at + h.total <= len);
		memcpy(&again, bytes + at + h.total - 4, 4);
		assert_int_equal(again, h.total);
		counts[h.kind] += h.count;
		at += h.total;
	}
	assert_int_equal(at, len);
}

static void they_stand_behind_the_packets(void **state)
{
	unsigned counts[4];
	struct stat st;

	for (unsigned i = 0; i < RT_INTERVALS_MOST + 1; i++)
		log_in(GAP, 1000 * MS + i * 1000, 50000, 32);
	f.intervals.losses[f.intervals.loss_count++] = (struct interval_loss){
		.from_ns = TEST_NOW_REAL_NS, .to_ns = TEST_NOW_REAL_NS + 1, .count = 7};
	incident.bytes = 8;
	assert_int_equal(intervals_write(&incident, f.history_count - 1), 0);
	count_entries(counts);
	assert_int_equal(counts[RT_INTERVALS_THREADS], 1);
	assert_int_equal(counts[RT_INTERVALS_ENTRIES], RT_INTERVALS_MOST + 1);
	assert_int_equal(counts[RT_INTERVALS_LOSSES], 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(incident.bytes, st.st_size);
}

static void without_room_the_file_is_as_before(void **state)
{
	struct rlimit before, small = {.rlim_cur = 5000, .rlim_max = RLIM_INFINITY};
	struct stat st;

	for (unsigned i = 0; i < 1000; i++)
		log_in(GAP, 1000 * MS, 50000, 32);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_true(intervals_write(&incident, f.history_count - 1) < 0);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 8);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_logged, end_logged)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(thousand_gaps_of_a_second_are_all_there),
		CASE(what_snapshots_have_is_not_drawn_twice),
		CASE(a_gap_that_lasts_is_drawn),
		CASE(a_gap_that_has_just_ended_is_drawn_once),
		CASE(a_gap_that_lasts_is_drawn_beside_others),
		CASE(what_does_not_touch_the_window_is_left_out),
		CASE(a_thread_that_is_not_there_is_left_out),
		CASE(of_too_many_the_longest_are_drawn),
		CASE(what_was_lost_is_hatched),
		CASE(time_whose_intervals_were_written_over_is_hatched),
		CASE(they_are_taken_with_each_snapshot),
		CASE(they_stand_behind_the_packets),
		CASE(without_room_the_file_is_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
