/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts, latencies and states, and the file in which they are. e2e/trace/test_timeline.py reads
 * the golden file by a reader of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/fake_reader.h"
#include "timeline.h"

#define START FAKE_START_NS

static struct timeline l;
static struct ringtap_capture *cap;
static char *data;
static size_t size;

static int begin(void **state)
{
	fake = (struct fake){.apps = 1};
	l = (struct timeline){.pid = 4711, .name = "app\x1b"};
	if (ringtap_capture_create(&cap, NULL) ||
		ringtap_capture_attach(cap, "app0", NULL, 0, NULL))
		return -1;
	l.cap = l.fates_cap = cap;
	l.out.f = open_memstream(&data, &size);
	l.out.start_ns = START;
	l.out.boot_ns = 1000;
	return timeline_begin(&l, *state != NULL, true);
}

static int end(void **state)
{
	timeline_free(&l);
	fclose(l.out.f);
	free(data);
	ringtap_capture_close(cap);
	return 0;
}

/* ---- streams */

static const struct ringtap_packet base = {.length = 64, .direction = RINGTAP_RX};

static void packets(struct timeline_thread *t, struct ringtap_packet p, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		timeline_packet(&l, t, &p);
		p.dropcount = 0;
		p.id += p.id != 0;
	}
}

static void received(struct timeline_thread *t, uint64_t at, uint32_t queue, unsigned n)
{
	struct ringtap_packet p = base;

	p.ns = START + at;
	p.queue = queue;
	packets(t, p, n);
}

static void sent(struct timeline_thread *t, uint64_t at, unsigned n)
{
	struct ringtap_packet p = base;

	p.ns = START + at;
	p.direction = RINGTAP_TX;
	p.interface = 1;
	packets(t, p, n);
}

static struct ringtap_thread_stats threads[] = {
	{.alive = true, .tid = 11, .lcore = 1, .name = "worker-1"},
	{.alive = true, .tid = 12, .lcore = UINT32_MAX, .name = "poller"}};
static struct ringtap_port_stats ports[] = {{.name = "p0", .read_ns = START + 500, .imissed = 10}};
static struct ringtap_ring_stats rings[] = {{.name = "work", .used = 5, .samples = 1}};
static struct ringtap_pool_stats pools[] = {{.name = "pool", .available = 100}};
static struct ringtap_gap open_gap = {
	.start_ns = START + 9000, .ns = 1000, .port = RINGTAP_NO_INDEX, .open = true};

#define ARRAY(a)                                     \
	{                                            \
		.first = (a), .stride = sizeof(*(a)) \
	}
static struct ringtap_snapshot snapshot(uint64_t at)
{
	return (struct ringtap_snapshot){.taken_ns = START + at,
		.thread_count = 2,
		.port_count = 1,
		.ring_count = 1,
		.pool_count = 1,
		.threads = ARRAY(threads),
		.ports = ARRAY(ports),
		.rings = ARRAY(rings),
		.pools = ARRAY(pools)};
}

/* One line of hexadecimal digits for each packet of the file. */
static char *hex(void)
{
	char *text = NULL;
	size_t len = 0, at = 0;
	FILE *f = open_memstream(&text, &len);

	fflush(l.out.f);
	assert_int_equal(l.out.bytes, size);
	while (at < size) {
		size_t n = (uint8_t)data[at + 1], head = 2;

		assert_int_equal(data[at], 1 << 3 | 2);
		if (n >= 128)
			n = (n & 127) | (size_t)(uint8_t)data[at + head++] << 7;
		for (n += head; n; n--)
			fprintf(f, "%02x", (uint8_t)data[at++]);
		fputc('\n', f);
	}
	assert_int_equal(at, size);
	fclose(f);
	return text;
}

static void put_states(void)
{
	static struct off_cpu off[OFF_CPU_KEPT];
	static struct cpu_task tasks[CPU_TASKS_KEPT];
	struct ringtap_snapshot s = snapshot(1000);

	l.stats = &s;
	timeline_counters(&l, &s);
	ports[0].imissed = 13;
	ports[0].read_ns = START + 1500;
	rings[0].used = 8;
	s.taken_ns = START + 2000;
	timeline_counters(&l, &s);
	timeline_interval(&l, &(struct ringtap_interval){.start_ns = START + 300,
				      .ns = 40,
				      .packets = 2,
				      .queue = 1,
				      .kind = RINGTAP_INTERVAL_GAP});
	timeline_interval(&l, &(struct ringtap_interval){.start_ns = START + 200,
				      .ns = 500,
				      .packets = 36,
				      .thread = 1,
				      .kind = RINGTAP_INTERVAL_BUSY});
	off[0] = (struct off_cpu){START + 600, START + 700, 0, 3, OFF_WAITED};
	off[1] = (struct off_cpu){START + 800, START + 800, 0, 3, OFF_FAULTED};
	tasks[0] = (struct cpu_task){START + 600, 3, 99, "hog"};
	tasks[1] = (struct cpu_task){START + 700, 3, 0, "swapper"};
	tasks[2] = (struct cpu_task){START + 750, 3, 11, "worker-1"};
	l.off = (struct off_cpus){.kept = off, .tasks = tasks, .count = 2, .task_count = 3};
	timeline_switches(&l, &s);
	l.off = (struct off_cpus){0};
	threads[0].gap_count = 1;
	threads[0].gaps = (struct ringtap_array)ARRAY(&open_gap);
	timeline_open_gaps(&l, &s);
	threads[0].gap_count = 0;
	ports[0].imissed = 10;
	rings[0].used = 5;
	ports[0].read_ns = START + 500;
}

static void a_small_stream(void **state)
{
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "worker-1");
	struct ringtap_packet p = base;
	char *text;

	received(t, 100, 0, 32);
	sent(t, 140, 30);
	sent(t, 150, 2);
	p.ns = START + 1000200;
	p.dropcount = 7;
	packets(t, p, 4);
	received(timeline_thread(&l, 0, 5, UINT32_MAX, ""), 170, RINGTAP_NO_INDEX, 1);
	put_states();
	p.fate = RINGTAP_FATE_NOT_OFFERED;
	timeline_fate(&l, &p);
	timeline_fate(&l, &p);
	p.fate = RINGTAP_FATE_UNSEEN;
	timeline_fate(&l, &p);
	timeline_end(&l, START + 2000000);
	text = hex();
	test_golden_text(GOLDEN, "timeline.hex", text);
	free(text);
	assert_int_equal(l.bursts[TIMELINE_RX], 3);
	assert_int_equal(l.packets[TIMELINE_RX], 37);
	assert_int_equal(l.bursts[TIMELINE_TX], 2);
	assert_int_equal(l.packets[TIMELINE_TX], 32);
	assert_int_equal(l.gaps, 2);
	assert_int_equal(l.busy, 1);
	assert_int_equal(l.not_offered, 2);
	assert_int_equal(l.unknown, 1);
	assert_int_equal(l.switches, 3);
}

/* Each of time, interface, queue and direction tells bursts apart; so does the thread. */
static void bursts_end(void **state)
{
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "");
	struct ringtap_packet p = base;

	p.ns = START;
	packets(t, p, 2);
	p.ns++;
	packets(t, p, 3);
	p.interface++;
	packets(t, p, 4);
	p.queue++;
	packets(t, p, 5);
	p.direction = RINGTAP_TX;
	packets(t, p, 6);
	t = timeline_thread(&l, 12, 1, 2, "");
	packets(t, p, 7);
	timeline_end(&l, START);
	assert_int_equal(l.bursts[TIMELINE_RX], 4);
	assert_int_equal(l.packets[TIMELINE_RX], 14);
	assert_int_equal(l.bursts[TIMELINE_TX], 2);
	assert_int_equal(l.packets[TIMELINE_TX], 13);
}

/* ---- latencies */

static void times_of_packets(void **state)
{
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "");
	struct ringtap_packet p = base;

	p.id = 1000;
	p.ns = START + 10;
	packets(t, p, 2); /* 1000, 1001 */
	p.id = 2000;
	p.ns = START + 20;
	packets(t, p, 1);
	p.direction = RINGTAP_TX;
	p.ns = START + 110;
	packets(t, p, 1);
	p.id = 1001;
	packets(t, p, 1);
	p.id = 5000; /* received before the trace */
	packets(t, p, 1);
	assert_int_equal(t->burst.packets, 3);
	assert_int_equal(t->burst.timed, 2);
	assert_int_equal(t->burst.sum_ns, 90 + 100);
	assert_int_equal(t->burst.max_ns, 100);
	assert_int_equal(t->burst.flow_count, 2);
	assert_int_equal(t->burst.flows[0], 2);
	assert_int_equal(t->burst.flows[1], 1);
	p.ns++; /* to a second port */
	p.id = 1001;
	packets(t, p, 1);
	assert_int_equal(t->burst.max_ns, 101);
}

/* A packet without a port leads to the burst that received it; those of two bursts are apart. */
static void fates_of_packets(void **state)
{
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "");
	struct ringtap_packet p = base;

	p.id = 1000;
	p.ns = START + 10;
	packets(t, p, 2);
	p.id = 2000;
	p.ns = START + 20;
	packets(t, p, 1);
	p.ns = START + 90;
	p.fate = RINGTAP_FATE_NOT_OFFERED;
	p.id = 1000;
	timeline_fate(&l, &p);
	p.id = 1001;
	timeline_fate(&l, &p);
	timeline_fates_until(&l, START + 89);
	assert_int_equal(l.fate.packets, 0);
	timeline_fates_until(&l, START + 90);
	assert_int_equal(l.fate.packets, 2);
	assert_int_equal(l.fate.burst, 1);
	assert_int_equal(l.fate.received_ns, START + 10);
	p.id = 2000;
	timeline_fate(&l, &p);
	timeline_fates_until(&l, START + 90);
	assert_int_equal(l.fate.packets, 1);
	assert_int_equal(l.fate.burst, 2);
	p.id = 3000;
	for (unsigned i = 0; i <= FATES_WAIT; i++)
		timeline_fate(&l, &p);
	assert_int_equal(l.fate.burst, 0);
	timeline_flush_fates(&l);
	assert_int_equal(l.not_offered, 3 + 1);
	timeline_fates_until(&l, UINT64_MAX);
	timeline_flush_fates(&l);
	assert_int_equal(l.not_offered, 3 + FATES_WAIT + 1);
}

/* The oldest of more packets than there is room for are not timed; nor is any timed wrongly. */
static void more_packets_than_room(void **state)
{
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "");
	struct ringtap_packet p = base;
	const unsigned room = PASSAGE_SETS * PASSAGE_WAYS;

	for (unsigned i = 0; i < 2 * room; i++) {
		p.id = 1 + i;
		p.ns = START + i;
		timeline_packet(&l, t, &p);
	}
	p.direction = RINGTAP_TX;
	p.ns = START + 2 * room;
	for (unsigned i = room + room / 2; i < 2 * room; i++) {
		p.id = 1 + i;
		timeline_packet(&l, t, &p);
	}
	assert_int_equal(t->burst.timed, room / 2);
	for (unsigned i = 0; i < room + room / 2; i++) {
		p.id = 1 + i;
		timeline_packet(&l, t, &p);
	}
	timeline_flush(&l, t);
	assert_in_range(l.timed, 1, room);
	p.ns++;
	p.id = 2 * room;
	timeline_packet(&l, t, &p);
	assert_int_equal(t->burst.max_ns, 2);
}

/* ---- the file */

static void names_beyond_the_table(void **state)
{
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "");
	uint64_t before;

	for (uint32_t queue = 0; queue < 3 * PERFETTO_NAMES; queue++)
		received(t, queue, queue, 1);
	timeline_flush(&l, t);
	assert_int_equal(t->track->names, PERFETTO_NAMES / 2);
	assert_true(perfetto_knows(t->track, 1));
	assert_false(perfetto_knows(t->track, (3u * PERFETTO_NAMES - 1) << 2 | RINGTAP_RX));
	before = l.out.bytes;
	received(t, 5000, 3 * PERFETTO_NAMES, 1);
	received(t, 5001, 0, 1);
	timeline_flush(&l, t);
	/* The first of them has its name in it. */
	assert_in_range(l.out.bytes - before, 80, 95);
}

static void the_largest_event(void **state)
{
	const uint64_t flows[PERFETTO_FLOWS] = {UINT64_MAX};
	char name[4 * PERFETTO_TEXT];
	struct perfetto_event e = {.type = PERFETTO_BEGIN,
		.ns = UINT64_MAX,
		.key = UINT64_MAX,
		.name = name,
		.flows = flows,
		.flow_count = PERFETTO_FLOWS};
	struct timeline_thread *t;
	char *text;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	t = timeline_thread(&l, UINT32_MAX, 0, UINT32_MAX - 1, "a name of a thread");
	for (int i = 0; i < PERFETTO_ARGUMENTS; i++)
		perfetto_argument(&e, i, UINT64_MAX);
	perfetto_put(&l.out, t->track, &e);
	text = hex();
	assert_int_equal(test_count(text, "6e6e6e"), (PERFETTO_TEXT - 1) / 3);
	free(text);
}

/* Times of one track never go back: Perfetto would take them for another nesting. */
static void times_that_go_back(void **state)
{
	struct perfetto_event e = {.type = PERFETTO_INSTANT, .key = 1, .name = "x"};
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "");

	e.ns = START + 10;
	perfetto_put(&l.out, t->track, &e);
	e.ns = START + 9;
	perfetto_put(&l.out, t->track, &e);
	assert_int_equal(t->track->last_ns, START + 10);
	e.ns = 0;
	perfetto_put(&l.out, t->busy, &e);
	assert_int_equal(t->busy->last_ns, START);
}

static void more_tracks_than_are_shown(void **state)
{
	for (uint32_t i = 1; i <= 2 * PERFETTO_TRACKS; i++) {
		struct timeline_thread *t = timeline_thread(&l, i, 0, i, "");

		if (i <= PERFETTO_TRACKS)
			received(t, i, 0, 1);
		else
			assert_null(t);
	}
	timeline_end(&l, START);
	assert_int_equal(l.out.tracks, PERFETTO_TRACKS);
	assert_true(l.out.beyond >= PERFETTO_TRACKS * 3 / 4);
	assert_int_equal(l.packets[TIMELINE_RX] + l.untracked, PERFETTO_TRACKS);
	assert_in_range(l.packets[TIMELINE_RX], PERFETTO_TRACKS / 4 - 1, PERFETTO_TRACKS / 4);
}

/* Records that were written over before they were taken are not shown as others. */
static void switches_that_are_gone(void **state)
{
	struct ringtap_snapshot s = snapshot(0);

	l.off.kept = calloc(OFF_CPU_KEPT, sizeof(*l.off.kept));
	l.off.tasks = calloc(CPU_TASKS_KEPT, sizeof(*l.off.tasks));
	l.off.count = OFF_CPU_KEPT + 10;
	timeline_switches(&l, &s);
	assert_int_equal(l.switches_lost, 1);
	l.off.task_count = CPU_TASKS_KEPT;
	timeline_switches(&l, &s);
	assert_int_equal(l.switches_lost, 1);
	l.off.task_count += CPU_TASKS_KEPT + 1;
	timeline_switches(&l, &s);
	assert_int_equal(l.switches_lost, 2);
}

/* After the kernel's refusal nothing is known: no task is shown as running then. */
static void switches_that_are_refused_later(void **state)
{
	static struct off_cpu off[OFF_CPU_KEPT];
	static struct cpu_task tasks[CPU_TASKS_KEPT] = {{START + 600, 3, 99, "hog"}};
	struct ringtap_snapshot s = snapshot(1000);

	l.off = (struct off_cpus){.kept = off, .tasks = tasks, .task_count = 1};
	timeline_switches(&l, &s);
	assert_true(l.cpus[0].open);
	l.off = (struct off_cpus){.refused = -EMFILE};
	s.taken_ns = START + 2000;
	timeline_switches(&l, &s);
	timeline_switches(&l, &s);
	assert_false(l.cpus[0].open);
	assert_int_equal(l.cpus[0].track->last_ns, START + 1000);
	assert_int_equal(l.switches, 1);
	assert_int_equal(l.switches_lost, 0);
}

/* Files of several applications are shown together. */
static void arrows_of_two_files_differ(void **state)
{
	const uint64_t flow = 1;
	const struct perfetto_event e = {
		.type = PERFETTO_INSTANT, .key = 1, .name = "x", .flows = &flow, .flow_count = 1};
	struct timeline_thread *t = timeline_thread(&l, 11, 0, 1, "");
	char *text;

	perfetto_put(&l.out, t->track, &e);
	l.out.start_ns++;
	perfetto_put(&l.out, t->track, &e);
	text = hex();
	/* START + 1 and START + 2 of field 47, eight bytes */
	assert_int_equal(test_count(text, "f90216cd853dfe9c9717"), 1);
	assert_int_equal(test_count(text, "f90217cd853dfe9c9717"), 1);
	free(text);
}

static void a_pipe_is_refused(void **state)
{
	struct test_output o;

	test_folder_enter();
	assert_int_equal(mkfifo("pipe", 0600), 0);
	o = test_command(&cmd_trace, "timeline|-w|pipe");
	assert_int_equal(o.status, STATUS_USAGE);
	assert_non_null(strstr(o.err, "trace: -w pipe: that is a pipe; give a file"));
	test_output_free(&o);
	test_folder_leave();
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define TIMED(f) \
	cmocka_unit_test_prestate_setup_teardown(f, begin, end, (void *)(uintptr_t) "latency")

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_small_stream),
		CASE(bursts_end),
		TIMED(times_of_packets),
		TIMED(fates_of_packets),
		TIMED(more_packets_than_room),
		CASE(names_beyond_the_table),
		CASE(the_largest_event),
		CASE(times_that_go_back),
		CASE(more_tracks_than_are_shown),
		CASE(switches_that_are_gone),
		CASE(switches_that_are_refused_later),
		CASE(arrows_of_two_files_differ),
		cmocka_unit_test(a_pipe_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
