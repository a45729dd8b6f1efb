/* SPDX-License-Identifier: BSD-3-Clause */
/* Event, crypto and DMA devices, and the usage of lcores. The libraries' functions are the test's,
 * with the prototypes of DPDK's headers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_cryptodev.h>
#include <rte_dmadev.h>
#include <rte_eventdev.h>

#include "probe/dpdk/compat.h"
#include "probe/dpdk/devices.h"
#include "probe/dpdk/ports.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

static struct rt_monitor mon;
static unsigned calls; /* calls of drivers */

/* ---- eventdev: statistic i of a part has the number 100 mode + 10 part + i */

static struct {
	unsigned count;
	bool there[2];
	uint32_t started, ports, queues;
	unsigned stats; /* statistics of each part */
	unsigned asked;
	const char *name; /* that of all statistics, or NULL */
	struct rte_device *device;
	uint64_t add;
} event;

uint8_t rte_event_dev_count(void)
{
	return (uint8_t)event.count;
}

int rte_event_dev_attr_get(uint8_t id, uint32_t attribute, uint32_t *value)
{
	event.asked++;
	if (id > 1 || !event.there[id])
		return -EINVAL;
	*value = attribute == RTE_EVENT_DEV_ATTR_STARTED      ? event.started
		 : attribute == RTE_EVENT_DEV_ATTR_PORT_COUNT ? event.ports
							      : event.queues;
	return 0;
}

int rte_event_dev_info_get(uint8_t id, struct rte_event_dev_info *info)
{
	memset(info, 0, sizeof(*info));
	info->driver_name = id ? "event_b" : "event_a";
	info->dev = event.device;
	return 0;
}

int rte_event_dev_xstats_names_get(uint8_t id, enum rte_event_dev_xstats_mode mode, uint8_t part,
	struct rte_event_dev_xstats_name *names, rt_compat_event_id *ids, unsigned size)
{
	static const char *const parts[] = {"dev", "port", "qid"};

	calls++;
	for (unsigned i = 0; i < event.stats && event.stats <= size; i++) {
		memset(&names[i], 'x', sizeof(names[i]));
		if (event.name)
			memcpy(names[i].name, event.name,
				strnlen(event.name, sizeof(names[i].name) - 1) + 1);
		else
			snprintf(names[i].name, sizeof(names[i].name), "%s_%u_%u", parts[mode],
				part, i);
		ids[i] = 100u * mode + 10u * part + i;
	}
	return (int)event.stats;
}

int rte_event_dev_xstats_get(uint8_t id, enum rte_event_dev_xstats_mode mode, uint8_t part,
	const rt_compat_event_id ids[], uint64_t values[], unsigned n)
{
	calls++;
	for (unsigned i = 0; i < n; i++)
		values[i] = 1000u * id + ids[i] + event.add;
	return (int)n;
}

/* ---- cryptodev */

static struct {
	bool there;
	uint16_t pairs, ready; /* queue pairs, and those of them that are set up */
	struct rte_cryptodev_stats stats;
} crypto;

unsigned rte_cryptodev_is_valid_dev(uint8_t id)
{
	return crypto.there && id == 3;
}

uint16_t rte_cryptodev_queue_pair_count(uint8_t id)
{
	return crypto.pairs;
}

int rte_cryptodev_get_qp_status(uint8_t id, uint16_t pair)
{
	return pair < crypto.ready;
}

const char *rte_cryptodev_name_get(uint8_t id)
{
	return "crypto_null0";
}

int rte_cryptodev_stats_get(uint8_t id, struct rte_cryptodev_stats *s)
{
	calls++;
	*s = crypto.stats;
	return 0;
}

/* ---- dmadev */

static struct {
	bool there;
	uint16_t channels;
} dma;

bool rte_dma_is_valid(int16_t id)
{
	return dma.there && id == 1;
}

int rte_dma_info_get(int16_t id, struct rte_dma_info *info)
{
	memset(info, 0, sizeof(*info));
	info->dev_name = "dma_skeleton1";
	info->nb_vchans = dma.channels;
	return 0;
}

int rte_dma_stats_get(int16_t id, uint16_t channel, struct rte_dma_stats *s)
{
	calls++;
	*s = (struct rte_dma_stats){.submitted = 90 + channel, .completed = 80, .errors = 7};
	return 0;
}

/* ---- tests */

static int start(void **state)
{
	memset(&event, 0, sizeof(event));
	memset(&crypto, 0, sizeof(crypto));
	memset(&dma, 0, sizeof(dma));
	calls = 0;
	return rt_ports_watch(rt_hook_cut);
}

static int end(void **state)
{
	test_monitors_drop();
	rt_ports_unwatch();
	return 0;
}

static void put_event(uint32_t ports, uint32_t queues, unsigned stats)
{
	event.count = 1;
	event.there[0] = true;
	event.started = 1;
	event.ports = ports;
	event.queues = queues;
	event.stats = stats;
}

static uint32_t count(void)
{
	return rt_stat_current->header->device_count;
}

static uint32_t beyond(void)
{
	return rt_stat_current->header->devices_beyond;
}

static const struct rt_stat_device *find(const char *name, uint16_t number)
{
	const struct rt_stats *f = rt_stat_current;

	for (uint32_t i = 0; i < count(); i++)
		if (!strcmp(f->devices[i].name, name) && f->devices[i].number == number)
			return &f->devices[i];
	fail_msg("no statistic %s", name);
	return NULL;
}

static void assert_stat(const struct rt_stat_device *d, const char *device,
	enum rt_device_kind kind, uint16_t id, enum rt_device_part part, uint64_t value)
{
	assert_string_equal(d->device, device);
	assert_int_equal(d->kind, kind);
	assert_int_equal(d->id, id);
	assert_int_equal(d->part, part);
	assert_int_equal(d->state, RT_IF_PRESENT);
	assert_true(d->read_ns > 0);
	assert_int_equal(d->value, value);
}

static void an_eventdev_its_ports_and_queues(void **state)
{
	put_event(2, 1, 3);
	event.count = 2;
	event.there[1] = true;
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	assert_int_equal(count(), 2 * 4 * 3); /* at once */
	assert_stat(find("dev_0_2", 0), "event_a", RT_DEVICE_EVENT, 0, RT_PART_DEVICE, 2);
	assert_stat(find("port_1_0", 1), "event_a", RT_DEVICE_EVENT, 0, RT_PART_PORT, 110);
	assert_stat(find("qid_0_1", 0), "event_a", RT_DEVICE_EVENT, 0, RT_PART_QUEUE, 201);
	assert_stat(
		&rt_stat_current->devices[12], "event_b", RT_DEVICE_EVENT, 1, RT_PART_DEVICE, 1000);
	assert_int_equal(beyond(), 0);
}

/* Its structure is EAL's own since 22.11. */
#if RTE_VERSION >= RTE_VERSION_NUM(22, 11, 0, 0)
static char of_event;
const char *__wrap_rte_dev_name(const struct rte_device *device);
const char *__wrap_rte_dev_name(const struct rte_device *device)
{
	return device == (const void *)&of_event ? "event_sw7" : NULL;
}
#else
static struct rte_device of_event = {.name = "event_sw7"};
#endif

static void the_name_of_an_eventdev(void **state)
{
	put_event(0, 0, 1);
	event.device = (void *)&of_event;
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	assert_string_equal(find("dev_0_0", 0)->device, "event_sw7");
}

static void a_crypto_device(void **state)
{
	crypto.there = true;
	crypto.pairs = crypto.ready = 2;
	crypto.stats = (struct rte_cryptodev_stats){.enqueued_count = 1ull << 40,
		.dequeued_count = 5,
		.enqueue_err_count = 6,
		.dequeue_err_count = 7};
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	assert_int_equal(count(), 4);
	assert_stat(find("enqueued_count", 0), "crypto_null0", RT_DEVICE_CRYPTO, 3, RT_PART_DEVICE,
		1ull << 40);
	assert_int_equal(find("dequeued_count", 0)->value, 5);
	assert_int_equal(find("enqueue_err_count", 0)->value, 6);
	assert_int_equal(find("dequeue_err_count", 0)->value, 7);
	crypto.stats.dequeued_count = 8;
	test_stats_tick();
	assert_int_equal(find("dequeued_count", 0)->value, 8);
	assert_int_equal(count(), 4);
}

static void a_dma_device_and_its_channels(void **state)
{
	dma.there = true;
	dma.channels = 2;
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	assert_int_equal(count(), 6);
	assert_stat(find("submitted", 1), "dma_skeleton1", RT_DEVICE_DMA, 1, RT_PART_CHANNEL, 91);
	assert_int_equal(find("completed", 0)->value, 80);
	assert_int_equal(find("errors", 0)->value, 7);
}

/* Drivers have no memory for statistics of others. */
static void devices_that_are_not_in_use_are_not_called(void **state)
{
	put_event(1, 1, 2);
	event.started = false;
	crypto.there = dma.there = true;
	crypto.pairs = 2;
	crypto.ready = 1;
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	test_stats_tick();
	crypto.pairs = 0;
	test_stats_tick();
	assert_int_equal(calls, 0);
	assert_int_equal(count(), 0);
}

static void only_with_their_collector(void **state)
{
	put_event(1, 1, 2);
	crypto.there = dma.there = true;
	crypto.pairs = crypto.ready = dma.channels = 1;
	test_monitor(&mon, RT_COLLECT_ALL & ~RT_COLLECT_DEVICES, 1);
	test_stats_tick();
	assert_int_equal(calls + event.asked, 0);
	assert_int_equal(count(), 0);
}

static void a_device_that_stops_and_starts_again(void **state)
{
	const struct rt_stat_device *d;

	put_event(1, 1, 2);
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	d = find("port_0_1", 0);
	event.started = 0;
	test_stats_tick();
	assert_int_equal(d->state, RT_IF_GONE);
	assert_int_equal(d->value, 101);
	event.started = 1;
	event.add = 5;
	test_stats_tick();
	assert_int_equal(d->state, RT_IF_PRESENT);
	assert_int_equal(d->value, 106);
	assert_int_equal(count(), 6);
}

/* The library logs an error at each request. */
static void a_number_that_is_not_in_use_is_asked_for_once(void **state)
{
	put_event(0, 0, 1);
	event.there[0] = false;
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	test_stats_tick();
	test_stats_tick();
	assert_int_equal(event.asked, 1);
	event.count = 2;
	event.there[0] = true;
	test_stats_tick();
	assert_int_equal(count(), 1);
}

static void statistics_without_an_entry_are_counted(void **state)
{
	put_event(4, 0, 500);
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	assert_int_equal(count(), RT_STAT_DEVICES);
	assert_int_equal(beyond(), 5 * 500 - RT_STAT_DEVICES);
	event.ports = 1;
	event.stats = 1025; /* in one part */
	test_stats_tick();
	assert_int_equal(beyond(), 2 * 1025);
	event.stats = 1;
	test_stats_tick();
	assert_int_equal(beyond(), 0);
}

static void names_of_drivers(void **state)
{
	put_event(0, 0, 2);
	event.name = "same";
	test_monitor(&mon, RT_COLLECT_DEVICES, 1);
	assert_int_equal(count(), 1);
	assert_int_equal(beyond(), 1);
	assert_int_equal(find("same", 0)->value, 0); /* the first */
	event.stats = 1;
	/* Longer than an entry has room for; the driver's has no end. */
	event.name = "012345678901234567890123456789012345678901234567890123456789012"
		     "34567890";
	test_stats_tick();
	test_stats_tick();
	assert_int_equal(count(), 2);
	assert_int_equal(strlen(rt_stat_current->devices[1].name), RT_NAME_LEN - 1);
	assert_int_equal(beyond(), 0);
}

/* ---- lcores */

#ifdef __x86_64__

/* As compilers make it of EAL's. */
__attribute__((visibility("hidden"), used)) rte_lcore_usage_cb usage_callback;
__asm__(".pushsection .text\n"
	".globl rte_lcore_register_usage_cb\n"
	".type rte_lcore_register_usage_cb, @function\n"
	"rte_lcore_register_usage_cb:\n"
	"endbr64\n"
	"mov %rdi, usage_callback(%rip)\n"
	"ret\n"
	".size rte_lcore_register_usage_cb, . - rte_lcore_register_usage_cb\n"
	".popsection\n");

static int usage_error;

static int usage_of(unsigned lcore, struct rte_lcore_usage *usage)
{
	calls++;
	usage->total_cycles = 1000 + calls;
	usage->busy_cycles = lcore == rte_get_main_lcore() ? 500 : 0;
	return usage_error;
}

static void what_the_application_counts_of_lcores(void **state)
{
	unsigned lcore = rte_get_main_lcore();
	const struct rt_stat_lcore *l;

	rte_lcore_register_usage_cb(usage_of);
	test_monitor(&mon, RT_COLLECT_POLLS | RT_COLLECT_DEVICES, 1);
	test_stats_tick();
	assert_int_equal(calls, 0);
	test_monitor(&mon, RT_COLLECT_BUSY, 1);
	assert_true(rt_stat_current->header->lcore_count > lcore); /* at once */
	l = &rt_stat_current->lcores[lcore];
	assert_true(l->read_ns > 0);
	assert_in_range(l->total_cycles, 1001, 1000 + calls);
	assert_int_equal(l->busy_cycles, 500);
	usage_error = -1;
	test_stats_tick();
	assert_int_equal(l->read_ns, 0);
	usage_error = 0;
	test_stats_tick();
	assert_true(l->read_ns > 0);
	rte_lcore_register_usage_cb(NULL);
	test_stats_tick();
	assert_int_equal(l->read_ns, 0);
}

#define LCORES cmocka_unit_test_setup_teardown(what_the_application_counts_of_lcores, start, end),
#else
#define LCORES
#endif

#define CASE(t) cmocka_unit_test_setup_teardown(t, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(an_eventdev_its_ports_and_queues),
		CASE(the_name_of_an_eventdev), CASE(a_crypto_device),
		CASE(a_dma_device_and_its_channels),
		CASE(devices_that_are_not_in_use_are_not_called), CASE(only_with_their_collector),
		CASE(a_device_that_stops_and_starts_again),
		CASE(a_number_that_is_not_in_use_is_asked_for_once),
		CASE(statistics_without_an_entry_are_counted), CASE(names_of_drivers), LCORES};

	test_stats_start();
	return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
