/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of perf about a thread, and the shares of its time. */
#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "test_incident.h"
#include "measure/off_cpu.h"
#include "view.h"

#define MS UINT64_C(1000000)

static const char format_text[] =
	"name: sched_switch\nID: 372\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";

static struct off_cpu_format format;
static pid_t later; /* a thread of the test */
static sem_t later_begun;

static int parse_format(void **state)
{
	return off_cpu_format_parse(format_text, &format) ? 0 : -1;
}

static void fields_of_a_tracepoint(void **state)
{
	assert_int_equal(format.id, 372);
	assert_int_equal(format.state, 32);
	assert_int_equal(format.name, 40);
	assert_int_equal(format.task, 56);
}

static void formats_that_cannot_be_used(void **state)
{
	static const char *const fields[] = {
		"ID: ", "prev_state;", "next_comm[16];", "next_pid;", "offset:40;", "size:4;"};
	struct off_cpu_format other;

	assert_false(off_cpu_format_parse("", &other));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char *text = strdup(format_text);

		strstr(text, fields[i])[0] = '?';
		assert_false(off_cpu_format_parse(text, &other));
		free(text);
	}
}

/* ---- records */

struct switched {
	struct perf_event_header header;
	uint64_t mono_ns;
	uint32_t cpu, reserved;
	uint32_t raw;
	uint8_t data[68];
} __attribute__((packed));

static struct switched switched(unsigned long prev_state)
{
	struct switched s = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(s)},
		.mono_ns = 77,
		.cpu = 3,
		.raw = 68};
	const uint32_t task = 4711;

	memcpy(s.data + 32, &prev_state, sizeof(prev_state));
	memcpy(s.data + 40, "hog", 4);
	memcpy(s.data + 56, &task, sizeof(task));
	return s;
}

static void a_switch_names_the_task_and_why(void **state)
{
	static const struct {
		unsigned long state;
		enum off_cpu_how how;
	} cases[] = {{0, OFF_WAITED}, {0x100, OFF_WAITED}, {1, OFF_SLEPT}, {2, OFF_BLOCKED},
		{4, OFF_STOPPED}, {8, OFF_STOPPED}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct switched s = switched(cases[i].state);
		struct off_cpu_record r;

		assert_true(off_cpu_record_parse(&format, &s, sizeof(s), &r));
		assert_int_equal(r.mono_ns, 77);
		assert_int_equal(r.cpu, 3);
		assert_int_equal(r.how, cases[i].how);
		assert_int_equal(r.task, 4711);
		assert_string_equal(r.name, "hog");
		assert_false(r.in);
	}
}

static void a_name_without_an_end_is_cut(void **state)
{
	struct switched s = switched(0);
	struct off_cpu_record r;

	memset(s.data + 40, 'x', 16);
	assert_true(off_cpu_record_parse(&format, &s, sizeof(s), &r));
	assert_string_equal(r.name, "xxxxxxxxxxxxxxx");
}

static void the_end_of_a_wait(void **state)
{
	struct {
		struct perf_event_header header;
		uint64_t mono_ns, cpu;
	} in = {{.type = PERF_RECORD_SWITCH, .size = sizeof(in)}, 78, 3}, out = in;
	struct off_cpu_record r;

	out.header.misc = PERF_RECORD_MISC_SWITCH_OUT;
	assert_true(off_cpu_record_parse(&format, &in, sizeof(in), &r));
	assert_true(r.in);
	assert_int_equal(r.mono_ns, 78);
	/* The tracepoint has it already. */
	assert_false(off_cpu_record_parse(&format, &out, sizeof(out), &r));
}

static void a_page_fault_has_no_tracepoint(void **state)
{
	struct switched s = switched(0);
	struct off_cpu_record r;

	s.raw = 4;
	assert_true(off_cpu_record_parse(&format, &s, sizeof(s), &r));
	assert_int_equal(r.how, OFF_FAULTED);
}

/* Each length that a record may claim, with each that there is. */
static void records_that_are_cut(void **state)
{
	for (unsigned size = 0; size <= sizeof(struct switched); size++) {
		for (unsigned claimed = 0; claimed < 100; claimed++) {
			struct switched s = switched(0);
			uint8_t *copy = malloc(size + 1);
			struct off_cpu_record r;
			bool good;

			s.header.size = (uint16_t)claimed;
			memcpy(copy, &s, size);
			good = off_cpu_record_parse(&format, copy, size, &r);
			assert_int_equal(good, size == sizeof(s) && claimed == sizeof(s));
			free(copy);
		}
	}
}

/* ---- interrupts */

static const char irq_text[] = "name: irq_handler_entry\nID: 225\nformat:\n"
			       "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
			       "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";

static void formats_of_interrupts(void **state)
{
	char *text = strdup(irq_text);

	assert_int_equal(irq_format_parse(irq_text, IRQ_HARD, true), 225);
	assert_int_equal(irq_format_parse(irq_text, IRQ_SOFT, true), 0);
	assert_int_equal(irq_format_parse("ID: 7\n", IRQ_SOFT, false), 7);
	assert_int_equal(irq_format_parse("ID: 7\n", IRQ_SOFT, true), 0);
	assert_int_equal(irq_format_parse("", IRQ_SOFT, false), 0);
	strstr(text, "offset:12")[8] = '6';
	assert_int_equal(irq_format_parse(text, IRQ_HARD, true), 0);
	free(text);
}

static struct switched interrupted(uint16_t id, uint32_t number, const char *name)
{
	struct switched s = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(s)},
		.mono_ns = 77,
		.cpu = 3,
		.raw = 68};
	const uint32_t place = 16 | (uint32_t)(strlen(name) + 1) << 16;

	memcpy(s.data, &id, sizeof(id));
	memcpy(s.data + 8, &number, sizeof(number));
	memcpy(s.data + 12, &place, sizeof(place));
	memcpy(s.data + 16, name, strlen(name));
	return s;
}

static void an_interrupt_has_its_name(void **state)
{
	static const struct {
		uint16_t id;
		uint32_t number;
		const char *in, *name;
		bool begins;
	} cases[] = {{225, 25, "eth0-rx-0", "eth0-rx-0", true},
		{225, 25, "a name that is long for this", "a name that is long", true},
		{226, 25, "", "", false}, {223, 3, "", "softirq NET_RX", true},
		{223, 1000, "", "interrupt", true}, {224, 3, "", "softirq NET_RX", false},
		{90, 236, "", "timer", true}};
	struct off_cpu_format all = format;
	const struct off_cpu_format ids = {.irq = {{225, 226}, {223, 224}, {90, 91}}};
	struct irq_record r;

	memcpy(all.irq, ids.irq, sizeof(all.irq));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct switched s = interrupted(cases[i].id, cases[i].number, cases[i].in);

		assert_true(irq_record_parse(&all, &s, sizeof(s), &r));
		assert_int_equal(r.mono_ns, 77);
		assert_int_equal(r.begins, cases[i].begins);
		assert_string_equal(r.name, cases[i].name);
		assert_false(irq_record_parse(&format, &s, sizeof(s), &r));
	}
	for (unsigned size = 0; size < sizeof(struct switched); size++) {
		struct switched s = interrupted(225, 25, "eth0");
		uint8_t *copy = malloc(size + 1);

		memcpy(copy, &s, size);
		assert_false(irq_record_parse(&all, copy, size, &r));
		free(copy);
	}
}

static void interrupt(uint64_t *last, uint32_t cpu, uint64_t from_us, uint64_t us, const char *name)
{
	struct irq_time t = {
		.from_ns = TEST_NOW_REAL_NS + from_us * 1000, .ns = us * 1000, .cpu = cpu};

	if (!f.off_cpus.irqs)
		f.off_cpus.irqs = calloc(IRQ_TIMES_KEPT, sizeof(*f.off_cpus.irqs));
	t.to_ns = t.from_ns + t.ns;
	snprintf(t.name, sizeof(t.name), "%s", name);
	irq_time_add(&f.off_cpus, last, &t);
}

static void assert_irqs(
	uint32_t cpu, uint64_t from_us, uint64_t to_us, uint64_t us, const char *name)
{
	size_t count;
	struct irq_time *all = irq_times_sorted(&f.off_cpus, &count);
	char most[IRQ_NAME];

	assert_int_equal(irq_ns_between(all, count, cpu, TEST_NOW_REAL_NS + from_us * 1000,
				 TEST_NOW_REAL_NS + to_us * 1000, most),
		us * 1000);
	assert_string_equal(most, name);
	free(all);
}

static void interrupts_of_a_time(void **state)
{
	uint64_t last[3] = {0};

	interrupt(&last[1], 1, 100, 40, "NET_RX");
	interrupt(&last[2], 2, 110, 30, "elsewhere");
	interrupt(&last[1], 1, 150, 40, "NET_RX"); /* one with the first */
	interrupt(&last[1], 1, 195, 10, "timer");
	interrupt(&last[1], 1, 300, 10, "NET_RX");
	assert_int_equal(f.off_cpus.irq_count, 4);
	assert_irqs(1, 0, 1000, 100, "NET_RX");
	assert_irqs(1, 192, 250, 10, "timer");
	assert_irqs(1, 250, 305, 5, "NET_RX");
	assert_irqs(2, 0, 120, 10, "elsewhere");
	assert_irqs(0, 0, 1000, 0, "");
	assert_irqs(3, 0, 1000, 0, "");
	assert_irqs(1, 400, 1000, 0, "");
}

/* ---- what a thread had of a time */

static void keep(uint32_t thread, uint64_t from_ms, uint64_t ms, enum off_cpu_how how)
{
	struct off_cpus *o = &f.off_cpus;
	struct off_cpu *v;

	o->since_ns = 1;
	if (!o->kept)
		o->kept = calloc(OFF_CPU_KEPT, sizeof(*o->kept));
	v = &o->kept[o->count++ % OFF_CPU_KEPT];
	*v = (struct off_cpu){.from_ns = TEST_NOW_REAL_NS + from_ms * MS,
		.to_ns = TEST_NOW_REAL_NS + (from_ms + ms) * MS,
		.thread = thread,
		.cpu = 1,
		.how = how};
}

/* A task begins to run. */
static void run(uint32_t cpu, uint64_t at_ms, uint32_t tid, const char *name)
{
	struct off_cpus *o = &f.off_cpus;
	struct cpu_task *t;

	if (!o->tasks)
		o->tasks = calloc(CPU_TASKS_KEPT, sizeof(*o->tasks));
	t = &o->tasks[o->task_count++ % CPU_TASKS_KEPT];
	*t = (struct cpu_task){.from_ns = TEST_NOW_REAL_NS + at_ms * MS, .cpu = cpu, .tid = tid};
	snprintf(t->name, sizeof(t->name), "%s", name);
}

static void assert_takers(uint32_t cpu, uint64_t from_ms, uint64_t to_ms, const char *expected)
{
	const struct off_cpu wait = {.from_ns = TEST_NOW_REAL_NS + from_ms * MS,
		.to_ns = TEST_NOW_REAL_NS + to_ms * MS,
		.cpu = cpu};
	struct taker takers[TAKERS_MAX];
	char text[256] = "";
	size_t count;
	struct cpu_task *all = cpu_tasks_sorted(&f.off_cpus, &count);
	unsigned n = cpu_takers(all, count, &wait, takers);

	for (unsigned k = 0; k < n; k++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %d ",
			takers[k].task->name, (int)(takers[k].ns / MS));
	assert_string_equal(text, expected);
	free(all);
}

static void tasks_that_had_a_cpu(void **state)
{
	run(2, 0, 7, "elsewhere");
	run(1, 10, 4, "worker");
	run(1, 20, 5, "ninja");
	run(1, 25, 99, "hog");
	run(1, 45, 0, "swapper/1");
	run(1, 50, 5, "ninja");
	run(1, 58, 6, "make");
	run(1, 60, 8, "least");
	run(1, 61, 4, "worker");
	assert_takers(1, 20, 61, "hog 20 ninja 13 make 2 ");
	assert_takers(1, 22, 26, "ninja 3 hog 1 ");
	assert_takers(1, 0, 12, "worker 2 ");
	assert_takers(1, 70, 80, "worker 10 ");
	assert_takers(2, 5, 6, "elsewhere 1 ");
	assert_takers(3, 5, 6, "");
	assert_takers(0, 5, 6, "");
}

/* More tasks than have a place. */
static void many_tasks(void **state)
{
	for (unsigned i = 0; i < 200; i++)
		run(1, 10 + i, i + 1, "one");
	run(1, 210, 1, "one");
	assert_takers(1, 10, 220, "one 11 one 1 one 1 ");
}

static void parts_of_a_time(void **state)
{
	size_t count;
	struct off_cpu *all;
	struct off_cpu_sum s;

	keep(1, 0, 5000, OFF_SLEPT);
	keep(0, 90, 20, OFF_WAITED);
	keep(0, 120, 30, OFF_WAITED);
	keep(0, 160, 10, OFF_SLEPT);
	keep(0, 175, 0, OFF_FAULTED);
	keep(0, 195, 100, OFF_BLOCKED);
	all = off_cpu_sorted(&f.off_cpus, &count);
	assert_int_equal(count, 6);
	s = off_cpu_between(
		all, count, 0, TEST_NOW_REAL_NS + 100 * MS, TEST_NOW_REAL_NS + 200 * MS);
	assert_int_equal(s.ns[OFF_WAITED], 40 * MS);
	assert_int_equal(s.ns[OFF_SLEPT], 10 * MS);
	assert_int_equal(s.ns[OFF_BLOCKED], 5 * MS);
	assert_int_equal(s.faults, 1);
	assert_int_equal(s.wait.from_ns, TEST_NOW_REAL_NS + 120 * MS);
	assert_int_equal(s.wait.to_ns, TEST_NOW_REAL_NS + 150 * MS);
	assert_int_equal(s.wait.cpu, 1);
	s = off_cpu_between(
		all, count, 0, TEST_NOW_REAL_NS + 111 * MS, TEST_NOW_REAL_NS + 119 * MS);
	assert_int_equal(s.ns[OFF_WAITED], 0);
	assert_int_equal(s.wait.to_ns, 0);
	free(all);
}

static void the_oldest_give_way(void **state)
{
	size_t count;
	struct off_cpu *all;

	for (unsigned i = 0; i < OFF_CPU_KEPT + 10; i++)
		keep(0, i, 1, OFF_WAITED);
	all = off_cpu_sorted(&f.off_cpus, &count);
	assert_int_equal(count, OFF_CPU_KEPT);
	assert_int_equal(all[0].from_ns, TEST_NOW_REAL_NS + 10 * MS);
	free(all);
}

/* ---- the page */

static void assert_cause(const char *state_name, const char *why)
{
	json_t *d = incident_view(&incident, 0, f.history_count - 1, NULL), *e, *bar, *s;
	size_t i;

	json_array_foreach(json_object_get(d, "panels"), i, e)
	{
		if (strcmp(json_string_value(json_object_get(e, "kind")), "lanes"))
			continue;
		bar = json_array_get(json_object_get(json_array_get(json_object_get(e, "lanes"), 0),
					     "intervals"),
			0);
		s = json_array_get(json_object_get(e, "states"),
			(size_t)json_integer_value(json_array_get(bar, 2)));
		assert_string_equal(json_string_value(json_object_get(s, "name")), state_name);
		assert_non_null(strstr(json_string_value(json_array_get(bar, 3)), why));
		json_decref(d);
		return;
	}
	fail();
}

static void causes_of_gaps(void **state)
{
	static const struct {
		enum off_cpu_how how;
		uint64_t ms;
		const char *state, *why;
	} cases[] = {
		{OFF_WAITED, 20, "gap: waited for its CPU",
			"; 'hog' (99) had its CPU for 15 ms, 'ninja' (5) for 5 ms"},
		{OFF_WAITED, 5, "gap: ran", "32 packets"},
		{OFF_SLEPT, 20, "gap: slept", "it slept for 20 ms"},
		{OFF_STOPPED, 20, "gap: slept", "it was stopped for 20 ms"},
		{OFF_BLOCKED, 20, "gap: page fault or disk", "32 packets"},
		{OFF_FAULTED, 0, "gap: page fault or disk", "1 page faults"},
	};

	uint64_t last = 0;

	intervals_on_all();
	log_in(RINGTAP_INTERVAL_GAP, 1000 * MS, 21 * MS, 32);
	run(1, 1001, 5, "ninja");
	run(1, 1006, 99, "hog");
	run(1, 1021, 4712, "dpdk-worker1");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f.off_cpus.count = 0;
		keep(0, 1001, cases[i].ms, cases[i].how);
		assert_cause(cases[i].state, cases[i].why);
	}
	f.off_cpus.count = 0;
	keep(0, 1022, 1, OFF_WAITED);
	interrupt(&last, ringtap_snapshot_thread(f.history[0], 0)->cpu, 1001000, 11000,
		"softirq NET_RX");
	assert_cause(
		"gap: interrupt", "interrupts of its CPU took 11 ms, most of it 'softirq NET_RX'");
	/* Records that perf has lost. */
	f.off_cpus.since_ns = TEST_NOW_REAL_NS + 1500 * MS;
	assert_cause("gap: waited for its CPU", "the kernel's counters");
}

static void *wait_for_end(void *fd)
{
	char c;

	later = gettid();
	sem_post(&later_begun);
	(void)!read(*(int *)fd, &c, 1);
	return NULL;
}

/* A thread's time before it was watched is unknown: no cause may be taken from it. */
static void a_thread_that_comes_later(void **state)
{
	struct ringtap_thread_stats *t;
	uint64_t since_ns;
	pthread_t thread;
	int fds[2];

	intervals_on_all();
	f.last = f.history[SECONDS];
	f.app.info.host_pid = (uint32_t)getpid();
	t = (struct ringtap_thread_stats *)ringtap_snapshot_thread(f.last, 0);
	t->tid = (uint32_t)gettid();
	t->alive = true;
	off_cpu_step(&f.off_cpus, f.last, f.app.info.host_pid);
	since_ns = f.off_cpus.since_ns;
	if (f.off_cpus.refused) {
		print_message("skipped: the kernel refuses perf's events of the scheduler\n");
		skip();
	}
	assert_int_equal(since_ns, rt_now_ns(CLOCK_REALTIME));
	rt_sleep_ns(2 * NS_PER_S);
	off_cpu_step(&f.off_cpus, f.last, f.app.info.host_pid);
	assert_int_equal(f.off_cpus.since_ns, since_ns);
	assert_int_equal(pipe(fds), 0);
	sem_init(&later_begun, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &fds[0]), 0);
	sem_wait(&later_begun);
	t->tid = (uint32_t)later;
	rt_sleep_ns(2 * NS_PER_S);
	off_cpu_step(&f.off_cpus, f.last, f.app.info.host_pid);
	assert_int_equal(f.off_cpus.since_ns, rt_now_ns(CLOCK_REALTIME));
	close(fds[1]);
	pthread_join(thread, NULL);
	close(fds[0]);
	off_cpu_free(&f.off_cpus);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_a_tracepoint),
		cmocka_unit_test(formats_that_cannot_be_used),
		cmocka_unit_test(a_switch_names_the_task_and_why),
		cmocka_unit_test(a_name_without_an_end_is_cut),
		cmocka_unit_test(the_end_of_a_wait),
		cmocka_unit_test(a_page_fault_has_no_tracepoint),
		cmocka_unit_test(records_that_are_cut),
		cmocka_unit_test(formats_of_interrupts),
		cmocka_unit_test(an_interrupt_has_its_name),
		CASE(interrupts_of_a_time),
		CASE(parts_of_a_time),
		CASE(tasks_that_had_a_cpu),
		CASE(many_tasks),
		CASE(the_oldest_give_way),
		CASE(causes_of_gaps),
		CASE(a_thread_that_comes_later),
	};

	return cmocka_run_group_tests(tests, parse_format, NULL);
}
