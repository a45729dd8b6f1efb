/* SPDX-License-Identifier: BSD-3-Clause */
/* Verdicts on made-up applications: what lies on either side of each threshold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/test_util.h"
#include "base/util.h"
#include "examination.h"
#include "limits.h"

#define QUEUES  4
#define SECONDS 10
#define HZ      1000000000

/* Two snapshots, SECONDS apart, of one port with RX queues 0 … 2 and TX queue 0, which one thread
 * polls, and one mempool. */
static struct ringtap_queue_stats queues[2][QUEUES];
static struct ringtap_thread_stats threads[2][1];
static struct ringtap_port_stats ports[2][1];
static struct ringtap_pool_stats pool;
static struct pool_readings readings;
static struct ringtap_snapshot snapshots[2];
static struct watched app;
static struct examination e;
static struct diagnosis d;

static void identify(unsigned k)
{
	snprintf(ports[k][0].name, sizeof(ports[k][0].name), "port");
	snprintf(ports[k][0].driver, sizeof(ports[k][0].driver), "net_null");
	ports[k][0].link_up = true;
	threads[k][0].lcore = 1;
	threads[k][0].generation = 1;
	threads[k][0].alive = true;
	threads[k][0].read_ns = (100 + k * SECONDS) * NS_PER_S;
	for (unsigned q = 0; q < QUEUES; q++) {
		queues[k][q].queue = (uint16_t)(q % 3);
		queues[k][q].direction = q == 3 ? RINGTAP_TX : RINGTAP_RX;
		queues[k][q].max_burst = q == 3 ? 0 : 32;
	}
	ports[k][0].read_ns = (100 + k * SECONDS) * NS_PER_S;
	snapshots[k] = (struct ringtap_snapshot){.taken_ns = (100 + k * SECONDS) * NS_PER_S,
		.taken_mono_ns = (5 + k * SECONDS) * NS_PER_S,
		.tsc_hz = HZ,
		.collectors = RINGTAP_POLLS | RINGTAP_BYTES | RINGTAP_BUSY | RINGTAP_GAPS,
		.port_count = 1,
		.thread_count = 1,
		.queue_count = QUEUES,
		.pool_count = 1,
		.ports = {ports[k], sizeof(ports[k][0])},
		.threads = {threads[k], sizeof(threads[k][0])},
		.queues = {queues[k], sizeof(queues[k][0])},
		.pools = {&pool, sizeof(pool)}};
}

static int setup(void **state)
{
	memset(queues, 0, sizeof(queues));
	memset(threads, 0, sizeof(threads));
	memset(ports, 0, sizeof(ports));
	pool = (struct ringtap_pool_stats){
		.name = "pool", .size = 8192, .available = 4000, .buffer_bytes = 2176};
	readings = (struct pool_readings){.count = 100, .least = 4000};
	identify(0);
	identify(1);
	app = (struct watched){
		.name = (char *)"app", .now = &snapshots[1], .mark = &snapshots[0], .tsc_hz = HZ};
	e = (struct examination){.app = &app, .pools = &readings, .pool_count = 1};
	return span_of(&app, &e.span) ? 0 : -1;
}

static void bursts(unsigned q, unsigned size, uint64_t calls)
{
	struct ringtap_queue_stats *x = &queues[1][q];

	x->burst[size] += calls;
	x->polls += calls;
	x->empty_polls += size ? 0 : calls;
	x->packets += size * calls;
}

static void busy(double share)
{
	threads[1][0].busy_cycles = (uint64_t)(share * HZ * SECONDS);
	threads[1][0].idle_cycles = (uint64_t)((1 - share) * HZ * SECONDS);
}

/* Judges, and expects that number of faults and this first verdict. */
static void expect(enum verdict_id first, unsigned faults)
{
	unsigned n = 0;

	d.count = 0;
	diagnose(&e, &d);
	for (unsigned i = 0; i < d.count; i++)
		n += d.verdict[i].grade == GRADE_FAULT;
	assert_true(d.count > 0);
	assert_string_equal(verdict_names[d.verdict[0].id], verdict_names[first]);
	assert_int_equal(n, faults);
	assert_true(d.verdict[0].evidence_count > 0);
	assert_non_null(d.verdict[0].advice);
}

static void idle_well_and_not_polling(void **state)
{
	expect(VERDICT_NOT_POLLING, 0);
	bursts(0, 0, 1000000);
	busy(0);
	expect(VERDICT_IDLE, 0);
	bursts(0, 1, LIMIT_IDLE_PPS * SECONDS - 1);
	expect(VERDICT_IDLE, 0);
	bursts(0, 16, 100);
	expect(VERDICT_HEALTHY, 0);
}

static void stopped_ports(void **state)
{
	bursts(0, 16, 1000);
	bursts(3, 16, 1000);
	busy(0.5);
	ports[1][0].stopped_ns = 103 * NS_PER_S;
	expect(VERDICT_HEALTHY, 0); /* it was never in use */
	ports[1][0].used = true;
	expect(VERDICT_HEALTHY, 0);
	assert_int_equal(d.verdict[1].id, VERDICT_PORT_STOPPED);
	assert_string_equal(d.verdict[1].where, "port");
	bursts(0, 16, 2); /* more than are sent */
	expect(VERDICT_PORT_STOPPED, 1);
	ports[1][0].gone = true;
	expect(VERDICT_HEALTHY, 0);
}

/* With its control thread: the age of the last poll in the statistics does not grow. */
static void stopped_process(void **state)
{
	struct kernel_thread k = {.tid = 71, .state = 'T', .call = -1};

	threads[1][0].tid = 71;
	threads[1][0].last_poll_ns = snapshots[1].taken_ns - 4500 * (NS_PER_S / 1000);
	e.kernel = &k;
	e.kernel_count = 1;
	strcpy(e.halted, "it is stopped (SIGSTOP)");
	expect(VERDICT_HUNG, 1);
	assert_non_null(strstr(d.verdict[0].evidence[1], "(71): the kernel shows it stopped by"));
	assert_non_null(strstr(d.verdict[0].evidence[1], ".500, 4.5 s ago"));
}

static void hung_threads(void **state)
{
	struct kernel_thread k[] = {
		{.tid = 70, .name = "main", .state = 'S', .call = SYS_read},
		{.tid = 71, .name = "dpdk-worker1", .state = 'S', .call = SYS_futex},
	};
	struct ringtap_thread_stats *t = &threads[1][0];

	bursts(0, 32, 1000);
	bursts(3, 32, 1000);
	busy(0.1);
	t->tid = 71;
	t->last_poll_ns = 100 * NS_PER_S;
	t->quiet_ns = LIMIT_HUNG_NS - 1;
	t->last_poll_packets = 32;
	t->last_poll_holds = true;
	expect(VERDICT_HEALTHY, 0);
	t->quiet_ns = LIMIT_HUNG_NS;
	expect(VERDICT_HUNG, 1);
	assert_non_null(strstr(d.verdict[0].evidence[0], "32 packets, and nothing has been sent"));
	/* By the kernel: a lock, an endless loop, a thread that waits for work. */
	e.kernel = k;
	e.kernel_count = 2;
	t->last_poll_holds = false;
	expect(VERDICT_HUNG, 1);
	assert_non_null(strstr(d.verdict[0].evidence[1], "futex()"));
	assert_string_equal(d.verdict[0].where, "lcore 1 (71)");
	k[1].state = 'R';
	expect(VERDICT_HUNG, 1);
	k[1].state = 'S';
	k[1].call = SYS_read;
	expect(VERDICT_HEALTHY, 0);
	t->last_poll_holds = true;
	expect(VERDICT_HUNG, 1);
}

/* The doctor came after they had stopped. */
static void threads_that_never_polled(void **state)
{
	struct kernel_thread k[] = {
		{.tid = 70, .name = "app", .state = 'R', .call = -1},
		{.tid = 71, .name = "rte-worker-1", .state = 'S', .call = SYS_read},
		{.tid = 72, .name = "telemetry-v2", .state = 'S', .call = SYS_futex},
	};

	app.info.pid = 70;
	e.kernel = k;
	e.kernel_count = 3;
	expect(VERDICT_NOT_POLLING, 0);
	assert_int_equal(d.verdict[0].evidence_count, 3);
	assert_non_null(strstr(d.verdict[0].evidence[2], "read()"));
	k[1].call = SYS_futex;
	expect(VERDICT_NOT_POLLING, 1);
}

static void missed_packets(void **state)
{
	bursts(0, 32, 40000);
	bursts(0, 16, 50000);
	busy(LIMIT_BUSY + 0.01);
	ports[1][0].ipackets = 1000000;
	ports[1][0].imissed = LIMIT_LOST_PACKETS - 1;
	expect(VERDICT_HEALTHY, 0);
	ports[1][0].imissed = 500000;
	expect(VERDICT_TOO_SLOW, 1);
	assert_string_equal(d.verdict[0].where, "port");
	app.ports[app.port_count++] = "another"; /* that is meant */
	expect(VERDICT_HEALTHY, 0);
	app.port_count = 0;
	busy(0.5); /* it has time, and its bursts are not full */
	expect(VERDICT_OVERFLOW, 1);
	/* It has time, but always finds a backlog. */
	bursts(0, 32, 100000);
	expect(VERDICT_TOO_SLOW, 1);
}

/* A thread that polls idle queues, too, is never busy all the time, nor are most of its polls. */
static void one_hot_queue_of_several(void **state)
{
	bursts(0, 32, 95000);
	bursts(0, 16, 5000);
	bursts(1, 0, 100000);
	bursts(2, 0, 100000);
	busy(0.8);
	queues[1][1].max_burst = queues[1][2].max_burst = 64;
	expect(VERDICT_UNEVEN_QUEUES, 1);
	assert_int_equal(d.verdict[1].id, VERDICT_SATURATED);
	ports[1][0].ipackets = 1000000;
	ports[1][0].imissed = 500000;
	expect(VERDICT_TOO_SLOW, 2); /* and uneven */
	assert_non_null(strstr(d.verdict[0].evidence[2], "95 %"));
	assert_non_null(strstr(d.verdict[0].evidence[2], "(32)"));
}

/* Emptying a queue with some huge polls is not what it does all the time. */
static void rare_polls_do_not_count(void **state)
{
	bursts(0, 8, 100000);
	bursts(1, 32, 10);
	busy(0.5);
	ports[1][0].ipackets = 1000000;
	ports[1][0].imissed = 500000;
	expect(VERDICT_OVERFLOW, 2); /* and uneven */
}

static void bursts_asked_for_before(void **state)
{
	bursts(0, 32, 1000);
	queues[0][1].max_burst = queues[1][1].max_burst = 512;
	queues[0][1].polls = queues[1][1].polls = 3;
	assert_int_equal(readings_burst(&app), 32);
	bursts(1, 0, 1);
	assert_int_equal(readings_burst(&app), 512);
	app.mark = NULL;
	assert_int_equal(readings_burst(&app), LIMIT_BURST);
}

static void missed_because_somebody_else_had_the_cpu(void **state)
{
	bursts(0, 8, 100000);
	busy(0.3);
	ports[1][0].ipackets = 1000000;
	ports[1][0].imissed = 500000;
	threads[1][0].cpu_ns = (uint64_t)((1 - 2 * LIMIT_WAIT) * SECONDS * NS_PER_S);
	threads[1][0].wait_ns = (uint64_t)(2 * LIMIT_WAIT * SECONDS * NS_PER_S);
	expect(VERDICT_PREEMPTED, 1);
	assert_non_null(strstr(d.verdict[0].evidence[d.verdict[0].evidence_count - 1], "missed"));
}

static void empty_mempools(void **state)
{
	bursts(0, 32, 100);
	busy(0.1);
	readings.empty = 9;
	expect(VERDICT_HEALTHY, 0);
	readings.empty = 10;
	expect(VERDICT_POOL_EXHAUSTED, 1);
	assert_string_equal(d.verdict[0].where, "pool");
	/* One that holds no packets may be as empty as it likes. */
	pool.buffer_bytes = 0;
	expect(VERDICT_HEALTHY, 0);
	pool.buffer_bytes = 2176;
	readings.empty = 0;
	ports[1][0].rx_nombuf = 1000;
	expect(VERDICT_POOL_EXHAUSTED, 1);
}

/* The thread that polls is that of lcore 1. */
static void mempool_that_is_in_the_cache_of_another_lcore(void **state)
{
	uint16_t caches[2] = {128, 20};
	struct readings r = {0};

	bursts(0, 32, 100);
	pool.available = 160;
	pool.in_caches = 148;
	pool.cache = caches;
	pool.cache_count = 2;
	threads[0][0].lcore = threads[1][0].lcore = 1;
	readings_add(&r, &app);
	assert_int_equal(readings_starved(&r.pools[0]), 0);
	pool.available = 140;
	pool.in_caches = 128;
	caches[1] = 0;
	readings_add(&r, &app);
	assert_int_equal(readings_starved(&r.pools[0]), 1);
	assert_int_equal(r.pools[0].least, 140);
	caches[1] = 128;
	caches[0] = 0;
	readings_add(&r, &app);
	assert_int_equal(readings_starved(&r.pools[0]), 1);
	free(r.pools);
}

/* The pool of a thread that does not poll, lcore 0; the other one has another pool. */
static void mempool_of_a_sending_thread(void **state)
{
	uint16_t caches[2] = {384, 0};
	struct readings r = {0};

	bursts(0, 32, 100);
	busy(0.1);
	pool.available = 384;
	pool.in_caches = 384;
	pool.cache = caches;
	pool.cache_count = 2;
	threads[0][0].lcore = threads[1][0].lcore = 1;
	for (unsigned i = 0; i < 10; i++)
		readings_add(&r, &app);
	readings = r.pools[0];
	expect(VERDICT_HEALTHY, 0);
	/* The sending thread itself may lack buffers. */
	pool.available = pool.in_caches = caches[0] = 31;
	readings_add(&r, &app);
	readings_add(&r, &app);
	readings = r.pools[0];
	expect(VERDICT_POOL_EXHAUSTED, 1);
	free(r.pools);
}

/* It gets nothing from any cache. */
static void mempool_of_a_receiving_thread_without_a_cache(void **state)
{
	uint16_t caches[2] = {384, 0};
	struct readings r = {0};

	bursts(0, 32, 100);
	pool.available = pool.in_caches = 384;
	pool.cache = caches;
	pool.cache_count = 2;
	threads[0][0].lcore = threads[1][0].lcore = UINT32_MAX;
	readings_add(&r, &app);
	assert_int_equal(readings_starved(&r.pools[0]), 1);
	free(r.pools);
}

static void packets_not_sent(void **state)
{
	bursts(3, 32, 100000);
	busy(0.1);
	ports[1][0].tx_before = ports[1][0].tx_after = 3200000;
	ports[1][0].opackets = 3200000 - 3000;
	expect(VERDICT_HEALTHY, 0); /* less than one in a thousand */
	ports[1][0].opackets = 3100000;
	expect(VERDICT_TX_REFUSED, 1);
	assert_non_null(strstr(d.verdict[0].evidence[1], "no errors"));
	/* As net_tap counts them. */
	ports[1][0].oerrors = 100000;
	expect(VERDICT_TX_REFUSED, 1);
	assert_non_null(strstr(d.verdict[0].evidence[1], "100,000 errors"));
}

static void kernel(double cpu, double wait)
{
	threads[1][0].cpu_ns = (uint64_t)(cpu * SECONDS * NS_PER_S);
	threads[1][0].wait_ns = (uint64_t)(wait * SECONDS * NS_PER_S);
}

static bool is_note(enum verdict_id id)
{
	for (unsigned i = 0; i < d.count; i++)
		if (d.verdict[i].id == id)
			return d.verdict[i].grade == GRADE_NOTE;
	return false;
}

static bool has_evidence(enum verdict_id id, const char *text)
{
	for (unsigned i = 0; i < d.count; i++)
		for (unsigned k = 0; d.verdict[i].id == id && k < d.verdict[i].evidence_count; k++)
			if (strstr(d.verdict[i].evidence[k], text))
				return true;
	return false;
}

static void gaps_without_work(void **state)
{
	bursts(0, 0, 100000000);
	busy(0);
	kernel(1, 0);
	threads[1][0].gaps_idle[6] = 100000000; /* 64 … 127 ns */
	threads[1][0].gaps_idle[14] = 5000;     /* 16 … 33 us: interrupts */
	expect(VERDICT_IDLE, 0);
	assert_false(is_note(VERDICT_PREEMPTED));
	threads[1][0].gaps_idle[22] = 40; /* 4 … 8 ms: 2.5 % of the time */
	/* Somebody took the time, or the application itself: no fault as long as nothing is lost.
	 */
	expect(VERDICT_IDLE, 0);
	assert_true(is_note(VERDICT_PREEMPTED));
	assert_true(has_evidence(VERDICT_PREEMPTED, "kernel saw it running"));
	assert_true(has_evidence(VERDICT_PREEMPTED, "other work"));
	kernel(0.985, 0.005);
	expect(VERDICT_IDLE, 0);
	assert_true(is_note(VERDICT_PREEMPTED));
	assert_false(has_evidence(VERDICT_PREEMPTED, "kernel saw it running"));
	kernel(0.98, 2 * LIMIT_WAIT);
	expect(VERDICT_PREEMPTED, 1);
	assert_false(has_evidence(VERDICT_PREEMPTED, "other work"));
	kernel(1, 0);
	ports[1][0].ipackets = 1000000;
	ports[1][0].imissed = 1000;
	expect(VERDICT_OVERFLOW, 2);
	assert_int_equal(d.verdict[1].id, VERDICT_PREEMPTED);
}

static void voluntary_sleep_is_no_preemption(void **state)
{
	bursts(0, 0, 100000);
	busy(0);
	threads[1][0].gaps_idle[6] = 100000;
	threads[1][0].gaps_idle[20] = 9000; /* 1 … 2 ms, nearly always */
	kernel(0.02, 0.03);
	expect(VERDICT_IDLE, 0);
	assert_int_equal(d.count, 1);
	/* It sleeps for a fifth of the time, which gaps show as well as they can. */
	threads[1][0].gaps_idle[20] = 1500;
	kernel(0.8, 0);
	expect(VERDICT_IDLE, 0);
	assert_int_equal(d.count, 1);
	/* For 3 %, and that is all the gaps. */
	threads[1][0].gaps_idle[20] = 200;
	kernel(0.97, 0);
	expect(VERDICT_IDLE, 0);
	assert_int_equal(d.count, 1);
	/* Nobody knows what it did. */
	threads[1][0].gaps_idle[20] = 1500;
	threads[1][0].read_ns = 0;
	expect(VERDICT_IDLE, 0);
	assert_int_equal(d.count, 1);
	/* A thread that polls every millisecond on purpose. */
	threads[1][0].read_ns = (100 + SECONDS) * NS_PER_S;
	kernel(1, 0);
	memset(threads[1][0].gaps_idle, 0, sizeof(threads[1][0].gaps_idle));
	threads[1][0].gaps_idle[19] = 10000;
	threads[1][0].gaps_idle[20] = 1000;
	expect(VERDICT_IDLE, 0);
	assert_int_equal(d.count, 1);
	/* It sleeps a little, and is kept waiting besides. */
	kernel(0.5, 0.2);
	expect(VERDICT_PREEMPTED, 1);
}

static void small_bursts(void **state)
{
	bursts(0, 2, 1000000);
	busy(0.5);
	expect(VERDICT_HEALTHY, 0);
	busy(0.95);
	expect(VERDICT_SMALL_BURSTS, 1);
	assert_non_null(strstr(d.verdict[0].evidence[2], "up to 32"));
	queues[1][0].max_burst = queues[1][1].max_burst = queues[1][2].max_burst = 2;
	expect(VERDICT_SMALL_BURSTS, 1);
	assert_non_null(strstr(d.verdict[0].evidence[2], "no more than 2"));
	bursts(0, 16, 1000000);
	expect(VERDICT_HEALTHY, 0);
}

static void uneven(void **state)
{
	bursts(0, 10, 1200);
	bursts(1, 10, 800);
	bursts(2, 10, 10);
	busy(0.6);
	expect(VERDICT_HEALTHY, 0); /* 60 %, 40 %, 0 % */
	bursts(0, 10, 1500);
	expect(VERDICT_UNEVEN_QUEUES, 1);
	/* Its thread has time left: worth a note. */
	busy(0.1);
	expect(VERDICT_HEALTHY, 0);
	assert_int_equal(d.verdict[1].id, VERDICT_UNEVEN_QUEUES);
	assert_int_equal(d.verdict[1].grade, GRADE_NOTE);
}

static void full_bursts_alone_are_no_fault(void **state)
{
	bursts(0, 32, 1000000);
	busy(1);
	expect(VERDICT_HEALTHY, 0);
	assert_int_equal(d.verdict[1].id, VERDICT_SATURATED);
	assert_non_null(strstr(d.verdict[1].evidence[2], "creates packets on demand"));
}

static struct ringtap_sample samples[2000];
static struct ringtap_sample_run run = {
	.thread = 0, .count = 2000, .samples = {samples, sizeof(samples[0])}};

static void scattered(void **state)
{
	struct ringtap_snapshot f = snapshots[1];

	bursts(0, 16, 1000000);
	busy(0.5);
	f.sample_runs = (struct ringtap_array){&run, sizeof(run)};
	f.sample_run_count = 1;
	e.samples = &f;
	pool.base = 1 << 30;
	pool.span = 1 << 30;
	pool.page_bytes = 4096;
	for (unsigned i = 0; i < 2000; i++)
		samples[i].address = (1 << 30) + (uint64_t)(i % 60) * 4096;
	expect(VERDICT_HEALTHY, 0); /* 60 pages have room in 64 entries */
	for (unsigned i = 0; i < 2000; i++)
		samples[i].address = (1 << 30) + (uint64_t)(i % 600) * 4096;
	/* Nobody translates addresses for net_null. */
	expect(VERDICT_HEALTHY, 0);
	assert_true(is_note(VERDICT_SCATTERED));
	assert_true(has_evidence(VERDICT_SCATTERED, "no device"));
	snprintf(ports[1][0].driver, sizeof(ports[1][0].driver), "net_ice");
	expect(VERDICT_SCATTERED, 1);
	assert_non_null(strstr(d.verdict[0].evidence[0], "600 different pages of 4 KiB"));
	pool.page_bytes = 2 << 20;
	expect(VERDICT_HEALTHY, 0);
	pool.page_bytes = 4096;
	/* Buffers that nobody knows: neither are their pages. */
	pool.base = 1ull << 40;
	expect(VERDICT_HEALTHY, 0);
	assert_int_equal(d.count, 1);
	/* Pinned ones are of the pool that has such. */
	pool.pinned_external = true;
	expect(VERDICT_SCATTERED, 1);
	pool.page_bytes = 0;
	expect(VERDICT_HEALTHY, 0);
	assert_int_equal(d.count, 1);
	pool.page_bytes = 4096;
	busy(LIMIT_SCATTERED_BUSY / 2);
	expect(VERDICT_HEALTHY, 0);
}

static void worst_first(void **state)
{
	bursts(0, 2, 1000000);
	busy(1);
	readings.empty = 100;
	threads[1][0].cpu_ns = (SECONDS - 1) * NS_PER_S;
	threads[1][0].wait_ns = NS_PER_S;
	ports[1][0].tx_before = ports[1][0].tx_after = 1000;
	expect(VERDICT_POOL_EXHAUSTED, 4);
	assert_int_equal(d.verdict[1].id, VERDICT_TX_REFUSED);
	assert_int_equal(d.verdict[2].id, VERDICT_PREEMPTED);
	assert_int_equal(d.verdict[3].id, VERDICT_SMALL_BURSTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(idle_well_and_not_polling, setup),
		cmocka_unit_test_setup(stopped_ports, setup),
		cmocka_unit_test_setup(hung_threads, setup),
		cmocka_unit_test_setup(stopped_process, setup),
		cmocka_unit_test_setup(threads_that_never_polled, setup),
		cmocka_unit_test_setup(missed_packets, setup),
		cmocka_unit_test_setup(missed_because_somebody_else_had_the_cpu, setup),
		cmocka_unit_test_setup(one_hot_queue_of_several, setup),
		cmocka_unit_test_setup(rare_polls_do_not_count, setup),
		cmocka_unit_test_setup(bursts_asked_for_before, setup),
		cmocka_unit_test_setup(empty_mempools, setup),
		cmocka_unit_test_setup(mempool_that_is_in_the_cache_of_another_lcore, setup),
		cmocka_unit_test_setup(mempool_of_a_sending_thread, setup),
		cmocka_unit_test_setup(mempool_of_a_receiving_thread_without_a_cache, setup),
		cmocka_unit_test_setup(packets_not_sent, setup),
		cmocka_unit_test_setup(gaps_without_work, setup),
		cmocka_unit_test_setup(voluntary_sleep_is_no_preemption, setup),
		cmocka_unit_test_setup(small_bursts, setup),
		cmocka_unit_test_setup(uneven, setup),
		cmocka_unit_test_setup(full_bursts_alone_are_no_fault, setup),
		cmocka_unit_test_setup(scattered, setup),
		cmocka_unit_test_setup(worst_first, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
