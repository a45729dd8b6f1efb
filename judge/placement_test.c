/* SPDX-License-Identifier: BSD-3-Clause */
/* Verdicts on the place of threads, from files of a machine that does not exist. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "examination.h"
#include "rules.h"

#define SECONDS 10
#define HZ      1000000000
#define PID     4711
#define TICKS   1000 /* USER_HZ, times SECONDS */

#define THREADS 10     /* more than are judged */
#define LINES   240000 /* in /proc/interrupts */

/* One port, whose queue a thread on CPU 2 polls, and two mempools. */
static struct ringtap_queue_stats queues[2][THREADS];
static struct ringtap_thread_stats threads[2][THREADS];
static struct ringtap_port_stats ports[2][1];
static struct ringtap_pool_stats pools[2];
static const uint16_t in_cache[2][2] = {{0, 32}, {0, 0}};
static struct ringtap_snapshot snapshots[2];
static struct watched app;
static struct examination e;
static struct machine_counts before, after;
static struct diagnosis d;
static char root[PATH_MAX];

/* Writes a file below the root, and the folders of its path. */
static void put(const char *path, const char *text)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *at = copy; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		mkdir(copy, 0700);
	}
	test_write(path, text, strlen(text));
}

static void put_stat_of(const char *path, unsigned faults, unsigned policy)
{
	char text[512];

	/* A name may have blanks and parentheses. */
	snprintf(text, sizeof(text),
		"4713 (a) b (c) R 1 4711 4711 0 -1 0 %u 0 5 0 0 0 0 0 20 0 3 0 100 0 0 0 0 0 0 0 0 0 "
		"0 0 0 0 0 0 17 2 0 %u 0 0 0\n",
		faults, policy);
	put(path, text);
}

static void put_task(unsigned faults, unsigned policy)
{
	put_stat_of("proc/4711/task/4713/stat", faults, policy);
	put("proc/4711/task/4713/status", "Name:\ta b\nNSpid:\t4713\t71\nThreads:\t3\n");
}

/* busy, steal: ticks of CPU 2 and of its sibling 3. */
static void put_stat(unsigned busy2, unsigned steal2, unsigned busy3)
{
	char text[512];

	snprintf(text, sizeof(text),
		"cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 5 0 5 5 0 0 0 0 0 0\ncpu2 %u 0 0 %u 0 0 0 %u 0 0\n"
		"cpu3 %u 0 0 %u 0 0 0 0 0 0\nintr 5\n",
		busy2, TICKS - busy2 - steal2, steal2, busy3, TICKS - busy3);
	put("proc/stat", text);
}

static void put_interrupts(unsigned ticks, unsigned nic, unsigned disk)
{
	char text[1024];

	/* CPU 1 is off. */
	snprintf(text, sizeof(text),
		"           CPU0       CPU2       CPU3\n"
		"  9:         70          0          0   IO-APIC   9-fasteoi   acpi\n"
		" 33:    9999999   %8u          0  IR-PCI-MSI 512-edge      eth0-TxRx-1\n"
		"133:          0   %8u       5000  IR-PCI-MSI 513-edge      nvme0q2\n"
		"NMI:          0          0          0   Non-maskable interrupts\n"
		"LOC:    5000000   %8u      90000   Local timer interrupts\n"
		"ERR:          0\n",
		nic, disk, ticks);
	put("proc/interrupts", text);
}

static void identify(unsigned k)
{
	snprintf(ports[k][0].name, sizeof(ports[k][0].name), "0000:17:00.0");
	snprintf(ports[k][0].device, sizeof(ports[k][0].device), "0000:17:00.0");
	for (uint32_t i = 0; i < THREADS; i++) {
		threads[k][i] = (struct ringtap_thread_stats){.lcore = 1,
			.generation = 1,
			.alive = true,
			.tid = 71 + i,
			.cpu = 2,
			.cpu_ns = k * SECONDS * NS_PER_S,
			.busy_cycles = k * SECONDS * (uint64_t)HZ / 2,
			.idle_cycles = k * SECONDS * (uint64_t)HZ / 2,
			.read_ns = (100 + k * SECONDS) * NS_PER_S};
		queues[k][i] = (struct ringtap_queue_stats){.thread = i,
			.direction = RINGTAP_RX,
			.max_burst = 32,
			.polls = k * 1000,
			.packets = k * 16000};
		queues[k][i].burst[16] = k * 1000;
	}
	snapshots[k] = (struct ringtap_snapshot){.taken_ns = (100 + k * SECONDS) * NS_PER_S,
		.taken_mono_ns = (5 + k * SECONDS) * NS_PER_S,
		.tsc_hz = HZ,
		.collectors = RINGTAP_POLLS | RINGTAP_BUSY,
		.port_count = 1,
		.thread_count = 1,
		.queue_count = 1,
		.pool_count = 2,
		.ports = {ports[k], sizeof(ports[k][0])},
		.threads = {threads[k], sizeof(threads[k][0])},
		.queues = {queues[k], sizeof(queues[k][0])},
		.pools = {pools, sizeof(pools[0])}};
}

/* A machine without faults: two nodes, CPUs 2 and 3 of one core of node 0, isolated. */
static int setup(void **state)
{
	test_folder_enter();
	if (!getcwd(root, sizeof(root)))
		return -1;
	machine_root = root;
	for (unsigned i = 0; i < 2; i++) {
		pools[i] = (struct ringtap_pool_stats){.size = 8192,
			.available = 4000,
			.buffer_bytes = 2176,
			.socket = (int)i,
			.cache_count = 2,
			.cache = in_cache[i]};
		snprintf(pools[i].name, sizeof(pools[i].name), "pool%u", i);
		identify(i);
	}
	put("sys/devices/system/node/node0/cpulist", "0-3\n");
	put("sys/devices/system/node/node1/cpulist", "4-7\n");
	put("sys/bus/pci/devices/0000:17:00.0/numa_node", "0\n");
	put("sys/devices/system/cpu/isolated", "2-3\n");
	put("sys/devices/system/cpu/nohz_full", "2-3\n");
	put("proc/cmdline", "quiet rcu_nocbs=1,2-3 isolcpus=2-3\n");
	put("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2-3\n");
	put("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n");
	put("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
	put("proc/sys/kernel/sched_rt_period_us", "1000000\n");
	put("proc/4711/numa_maps",
		"7f00 default file=/huge\\040one huge dirty=2 N0=99 N1=1 kernelpagesize_kB=2048\n"
		"7f10 default file=/lib N1=90 kernelpagesize_kB=4\n");
	put_task(100, 0);
	put_stat(0, 0, 0);
	put_interrupts(1000, 100, 200);
	app = (struct watched){
		.name = (char *)"app", .now = &snapshots[1], .mark = &snapshots[0], .tsc_hz = HZ};
	app.info.host_pid = PID;
	e = (struct examination){.app = &app};
	return span_of(&app, &e.span) ? 0 : -1;
}

static int teardown(void **state)
{
	machine_counts_free(&before);
	machine_counts_free(&after);
	test_folder_leave();
	return 0;
}

static void begin(void)
{
	machine_count(&before, PID);
	before.mono_ns = NS_PER_S;
}

/* Threads that poll. */
static void count_threads(uint32_t n)
{
	for (unsigned k = 0; k < 2; k++)
		snapshots[k].thread_count = snapshots[k].queue_count = n;
}

static void end(void)
{
	machine_count(&after, PID);
	after.mono_ns = before.mono_ns + SECONDS * NS_PER_S;
	e.before = &before;
	e.after = &after;
	d.count = 0;
}

/* Judges, and expects this one verdict, with the text in its evidence; NULL: none. */
static void expect(const char *verdict, const char *text)
{
	end();
	rule_placement(&e, &d);
	machine_counts_free(&before);
	machine_counts_free(&after);
	if (!verdict) {
		if (d.count)
			fail_msg(
				"%s: %s", verdict_names[d.verdict[0].id], d.verdict[0].evidence[0]);
		return;
	}
	assert_int_equal(d.count, 1);
	assert_string_equal(verdict_names[d.verdict[0].id], verdict);
	assert_int_equal(d.verdict[0].grade, GRADE_NOTE);
	assert_non_null(d.verdict[0].advice);
	if (!strstr(d.verdict[0].evidence[0], text))
		fail_msg("%s: not %s", d.verdict[0].evidence[0], text);
}

static void a_machine_without_faults(void **state)
{
	begin();
	put_stat(1000, 0, 90);
	put_interrupts(1090, 150, 240);
	put_task(190, 0);
	expect(NULL, NULL);
}

static void timer_ticks(void **state)
{
	begin();
	put_interrupts(3500, 100, 200);
	expect("not_isolated", "lcore 1 (71): CPU 2 had 250 timer ticks a second");
	assert_null(strstr(d.verdict[0].evidence[0], "not in"));
	begin();
	put_interrupts(6000, 100, 200);
	put("sys/devices/system/cpu/isolated", "\n");
	put("sys/devices/system/cpu/nohz_full", "(null)\n");
	put("proc/cmdline", "quiet rcu_nocbs=4-7\n");
	expect("not_isolated",
		"250 timer ticks a second; it is not in isolcpus, nohz_full, rcu_nocbs");
	/* The kernel offloads RCU callbacks of all CPUs in nohz_full. */
	begin();
	put_interrupts(9000, 100, 200);
	put("sys/devices/system/cpu/nohz_full", "2-3\n");
	expect("not_isolated", "it is not in isolcpus");
	assert_null(strstr(d.verdict[0].evidence[0], "rcu_nocbs"));
}

/* As of arm64: the timer has a number. */
static void put_arm_interrupts(unsigned ticks)
{
	char text[512];

	snprintf(text, sizeof(text),
		"           CPU0       CPU2\n"
		" 11:    5000000   %8u     GICv3  27 Level     arch_timer\n"
		" 14:          0          0     GICv3  23 Level     arm-pmu\n"
		"IPI0:      1000       2000       Rescheduling interrupts\n"
		"Err:          0\n",
		ticks);
	put("proc/interrupts", text);
}

static void timer_ticks_of_arm64(void **state)
{
	put_arm_interrupts(1000);
	begin();
	put_arm_interrupts(3500);
	expect("not_isolated", "lcore 1 (71): CPU 2 had 250 timer ticks a second");
}

static void interrupts_of_devices(void **state)
{
	begin();
	put_interrupts(1000, 1100, 300);
	expect("interrupts", "CPU 2 served 110 interrupts of devices a second, most of them of");
	assert_non_null(strstr(d.verdict[0].evidence[0], "eth0-TxRx-1 (IRQ 33)"));
	assert_string_equal(d.verdict[0].where, "lcore 1 (71)");
	/* One that has come since. */
	begin();
	put("proc/interrupts",
		"     CPU0  CPU1  CPU2\n 40:  1  2  1500  MSI new\nLOC: 1 2 1000 timer\n");
	expect("interrupts",
		"CPU 2 served 150 interrupts of devices a second, most of them of new (IRQ 40)");
	/* One between others that remain, and one that has gone. */
	put_interrupts(1000, 9000, 20000);
	begin();
	put("proc/interrupts",
		"   CPU0  CPU2\n  9: 70  0 acpi\n 40:  0 1100 new\n133:  0  20000 disk\n"
		"LOC:  0 1000 timer\n");
	expect("interrupts",
		"CPU 2 served 110 interrupts of devices a second, most of them of new (IRQ 40)");
}

static void put_lines(unsigned last)
{
	FILE *f = fopen("proc/interrupts", "w");

	assert_non_null(f);
	fprintf(f, "CPU2\n");
	for (unsigned i = 0; i < LINES; i++)
		fprintf(f, "%u: %u nic\n", i, i < LINES - 1 ? 5 : last);
	assert_int_equal(fclose(f), 0);
}

/* Their time grows with their number: if it did with its square, the test would last minutes, and
 * meson would end it. */
static void many_interrupts(void **state)
{
	put_lines(100);
	begin();
	put_lines(1600);
	expect("interrupts",
		"150 interrupts of devices a second, most of them of nic (IRQ 239999)");
}

static void stolen_time(void **state)
{
	begin();
	put_stat(991, 9, 0);
	expect(NULL, NULL);
	put_stat(0, 0, 0);
	begin();
	put_stat(980, 20, 0);
	expect("stolen", "CPU 2 for 2.0 % of the time");
}

static void siblings(void **state)
{
	begin();
	put_stat(1000, 0, 500);
	expect("shared_core", "CPU 3, on the same core as its CPU 2, was busy 50.0 % of the time");
}

static void governors(void **state)
{
	put("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "schedutil\n");
	put("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "1200000\n");
	put("sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq", "3600000\n");
	begin();
	expect("governor", "CPU 2 is schedutil");
	assert_string_equal(d.verdict[0].evidence[1], "it runs at 1.20 GHz of 3.60");
}

static void nodes_of_ports_and_mempools(void **state)
{
	put("sys/bus/pci/devices/0000:17:00.0/numa_node", "1\n");
	begin();
	expect("far_node", "runs on CPU 2 of node 0, and uses port 0000:17:00.0 of node 1");
	assert_int_equal(d.verdict[0].evidence_count, 1);
	put("sys/bus/pci/devices/0000:17:00.0/numa_node", "-1\n");
	pools[0].socket = 1;
	begin();
	expect("far_node", "takes mbufs of mempool pool0 of node 1");
	pools[0].socket = -1;
	begin();
	expect(NULL, NULL);
	/* The application chooses its name. */
	put("sys/bus/elsewhere/numa_node", "1\n");
	strcpy(ports[1][0].device, "../../elsewhere");
	begin();
	expect(NULL, NULL);
}

static void huge_pages(void **state)
{
	put("proc/4711/numa_maps", "7f00 default huge N0=8 N1=2 kernelpagesize_kB=1048576\n");
	begin();
	expect("far_pages", "at NUMA nodes where no thread polls");
	put("proc/4711/numa_maps", "7f00 default huge N1=1 N0=99 kernelpagesize_kB=2048\n");
	begin();
	expect(NULL, NULL);
}

/* The last of many threads, or one that sleeps most of the time, is at the pages' node. */
static void huge_pages_of_any_thread(void **state)
{
	put("proc/4711/numa_maps", "7f00 default huge N0=8 N1=2 kernelpagesize_kB=1048576\n");
	count_threads(THREADS);
	begin();
	expect("far_pages", "at NUMA nodes where no thread polls");
	threads[1][THREADS - 1].cpu = 5;
	begin();
	expect(NULL, NULL);
	count_threads(2);
	threads[1][1].cpu = 5;
	threads[1][1].cpu_ns = SECONDS * NS_PER_S / 4;
	begin();
	expect(NULL, NULL);
	/* Its node is unknown. */
	threads[1][1].cpu = 9;
	begin();
	expect(NULL, NULL);
}

static void page_faults(void **state)
{
	begin();
	put_task(1100, 0);
	expect("page_faults", "it had 100 page faults a second");
}

/* The process has its own files, with the faults of all its threads. */
static void page_faults_of_other_threads(void **state)
{
	threads[1][0].tid = 70;
	put_stat_of("proc/4711/task/4711/stat", 100, 0);
	put("proc/4711/task/4711/status", "NSpid:\t4711\t70\n");
	put("proc/4711/status", "NSpid:\t4711\t70\n");
	put_stat_of("proc/4711/stat", 1000, 0);
	begin();
	assert_int_equal(before.task_count, 2);
	put_stat_of("proc/4711/stat", 9000, 0);
	expect(NULL, NULL);
}

static void real_time_threads(void **state)
{
	put_task(100, 1);
	begin();
	expect("throttled", "SCHED_FIFO, and such threads may run for 950 ms of each 1000 ms");
	put("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
	begin();
	expect(NULL, NULL);
	put("proc/sys/kernel/sched_rt_runtime_us", "1000000\n");
	begin();
	expect(NULL, NULL);
}

/* A thread that sleeps most of the time, and one that does not poll, may be anywhere. */
static void threads_that_sleep(void **state)
{
	threads[1][0].cpu_ns = SECONDS * NS_PER_S / 4;
	begin();
	put_stat(250, 0, 500);
	put_interrupts(3500, 1100, 300);
	expect(NULL, NULL);
}

/* CPUs 100 … 163. */
static void put_busy(unsigned ticks)
{
	char text[4096] = "cpu  0\n";

	for (unsigned cpu = 100, n = (unsigned)strlen(text); cpu < 100 + VERDICTS_MAX; cpu++)
		n += (unsigned)snprintf(
			text + n, sizeof(text) - n, "cpu%u %u 0 0 0 0 0 0 0\n", cpu, ticks);
	put("proc/stat", text);
}

/* Many notes leave room for the verdict on the application. */
static void healthy_with_many_notes(void **state)
{
	bool healthy = false;

	put("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2,100-163\n");
	put_busy(0);
	begin();
	put_busy(1000);
	end();
	diagnose(&e, &d);
	assert_int_equal(d.count, VERDICTS_MAX);
	for (unsigned i = 0; i < d.count; i++)
		healthy = healthy || d.verdict[i].id == VERDICT_HEALTHY;
	assert_true(healthy);
}

/* As in a container that hides them, and with files that say nothing. */
static void files_that_are_missing_or_wrong(void **state)
{
	static const char *const wrong[] = {"", "\n", "cpu2", "\ncpu2 ", "LOC:", "CPU2\n9",
		"CPU2\n9:", "CPU2\n9: \n", "CPU2\n9: 5", ":::\n::\n"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin();
		put("proc/stat", wrong[i]);
		put("proc/interrupts", wrong[i]);
		put("proc/cmdline", wrong[i]);
		put("proc/4711/task/4713/stat", wrong[i]);
		put("proc/4711/task/4713/status", wrong[i]);
		put("proc/4711/numa_maps", wrong[i]);
		put("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", wrong[i]);
		put("sys/bus/pci/devices/0000:17:00.0/numa_node", wrong[i]);
		expect(NULL, NULL);
	}
	machine_root = "/nonexistent";
	begin();
	expect(NULL, NULL);
	e.before = e.after = NULL;
	d.count = 0;
	rule_placement(&e, &d);
	assert_int_equal(d.count, 0);
}

static void lists_of_cpus(void **state)
{
	assert_true(machine_listed("0-3,8\n", 3));
	assert_true(machine_listed("0-3,8\n", 8));
	assert_false(machine_listed("0-3,8\n", 4));
	assert_false(machine_listed("", 0));
	assert_false(machine_listed("(null)", 0));
	assert_true(machine_listed("5 quiet", 5));
	assert_int_equal(machine_node(5), 1);
	assert_int_equal(machine_node(8), -1);
}

#define MACHINE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MACHINE_TEST(a_machine_without_faults),
		MACHINE_TEST(timer_ticks),
		MACHINE_TEST(timer_ticks_of_arm64),
		MACHINE_TEST(interrupts_of_devices),
		MACHINE_TEST(many_interrupts),
		MACHINE_TEST(stolen_time),
		MACHINE_TEST(siblings),
		MACHINE_TEST(governors),
		MACHINE_TEST(nodes_of_ports_and_mempools),
		MACHINE_TEST(huge_pages),
		MACHINE_TEST(huge_pages_of_any_thread),
		MACHINE_TEST(page_faults),
		MACHINE_TEST(page_faults_of_other_threads),
		MACHINE_TEST(real_time_threads),
		MACHINE_TEST(threads_that_sleep),
		MACHINE_TEST(healthy_with_many_notes),
		MACHINE_TEST(files_that_are_missing_or_wrong),
		MACHINE_TEST(lists_of_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
