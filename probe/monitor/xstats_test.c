/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended statistics of drivers: those of net_ring, and those of a driver that the test makes up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "probe/dpdk/ports.h"
#include "probe/dpdk/xstats.h"
#include "probe/hook/hook.h"
#include "probe/test_eal.h"
#include "probe/test_ports.h"

static uint16_t port;
static struct rt_monitor mon;

/* Made up: statistic i is "number_i" with the value 1000 + i. */
static bool made_up;
static unsigned made_count, value_calls, name_calls;
static int name_excess;                                     /* names that are not values */
static void (*change)(struct rte_eth_xstat *x, unsigned n); /* the values, or NULL */
static void (*change_names)(struct rte_eth_xstat_name *x, unsigned n); /* or NULL */

int __real_rte_eth_xstats_get(uint16_t port_id, struct rte_eth_xstat *xstats, unsigned n);
int __wrap_rte_eth_xstats_get(uint16_t port_id, struct rte_eth_xstat *xstats, unsigned n);
int __real_rte_eth_xstats_get_names(
	uint16_t port_id, struct rte_eth_xstat_name *names, unsigned size);
int __wrap_rte_eth_xstats_get_names(
	uint16_t port_id, struct rte_eth_xstat_name *names, unsigned size);

int __wrap_rte_eth_xstats_get(uint16_t port_id, struct rte_eth_xstat *xstats, unsigned n)
{
	unsigned count;

	value_calls++;
	if (!made_up)
		return __real_rte_eth_xstats_get(port_id, xstats, n);
	count = made_count;
	for (unsigned i = 0; n >= count && i < count; i++)
		xstats[i] = (struct rte_eth_xstat){.id = i, .value = 1000 + i};
	if (change)
		change(xstats, count);
	return (int)count;
}

int __wrap_rte_eth_xstats_get_names(
	uint16_t port_id, struct rte_eth_xstat_name *names, unsigned size)
{
	name_calls++;
	if (!made_up)
		return __real_rte_eth_xstats_get_names(port_id, names, size);
	for (unsigned i = 0; size >= made_count && i < made_count; i++) {
		memset(&names[i], 'x', sizeof(names[i]));
		snprintf(names[i].name, sizeof(names[i].name), "number_%u", i);
	}
	if (change_names)
		change_names(names, made_count);
	return (int)made_count + name_excess;
}

static int start(void **state)
{
	made_up = false;
	change = NULL;
	change_names = NULL;
	name_excess = 0;
	value_calls = name_calls = 0;
	port = test_port_make("net_ring_0");
	return rt_ports_watch(rt_hook_cut);
}

static int end(void **state)
{
	test_monitors_drop();
	rt_ports_unwatch();
	test_port_remove(port);
	return 0;
}

static void begin_made_up(unsigned count)
{
	made_up = true;
	made_count = count;
	test_monitor(&mon, RT_COLLECT_XSTATS, 1);
}

static const struct rt_stat_xstat *find(const char *name)
{
	const struct rt_stats *f = rt_stat_current;

	for (uint32_t i = 0; i < f->header->xstat_count; i++)
		if (!strcmp(f->xstats[i].name, name))
			return &f->xstats[i];
	fail_msg("no xstat %s", name);
	return NULL;
}

static uint32_t beyond(void)
{
	return rt_stat_current->header->xstats_beyond;
}

static void they_are_those_of_the_driver(void **state)
{
	const struct rt_stat_xstat *x;
	uint64_t before;

	test_port_send(port, 5);
	test_monitor(&mon, RT_COLLECT_XSTATS, 1);
	x = find("tx_good_packets"); /* at once */
	assert_int_equal(x->state, RT_IF_PRESENT);
	assert_int_equal(x->port_index, test_port_index(port));
	assert_int_equal(x->value, 5);
	before = x->read_ns;
	assert_true(before > 0);
	value_calls = 0;
	test_port_send(port, 3);
	assert_int_equal(test_port_poll(port, 32), 8);
	assert_int_equal(value_calls, 0); /* hooks are in the polling threads */
	test_stats_tick();
	assert_int_equal(value_calls, 1);
	assert_int_equal(x->value, 8);
	assert_true(x->read_ns >= before);
	assert_int_equal(find("rx_q0_packets")->value, 8);
	assert_int_equal(beyond(), 0);
}

static void only_with_their_collector(void **state)
{
	test_monitor(&mon, RT_COLLECT_POLLS | RT_COLLECT_POOLS, 1);
	test_stats_tick();
	assert_int_equal(value_calls + name_calls, 0);
	assert_int_equal(rt_stat_current->header->xstat_count, 0);
}

static void names_are_read_once(void **state)
{
	begin_made_up(40);
	for (int i = 0; i < 5; i++)
		test_stats_tick();
	assert_int_equal(name_calls, 1);
	assert_int_equal(value_calls, 6);
	assert_int_equal(rt_stat_current->header->xstat_count, 40);
	assert_int_equal(find("number_39")->value, 1039);
}

static void with_other_names(struct rte_eth_xstat_name *x, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		snprintf(x[i].name, sizeof(x[i].name), "other_%u", i);
}

/* As many as before: a port has been configured while it was stopped, or while nobody read it. */
static void names_are_read_again_when_they_may_have_changed(void **state)
{
	begin_made_up(3);
	change_names = with_other_names;
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	test_stats_tick();
	test_monitor(&mon, RT_COLLECT_XSTATS, 1);
	assert_int_equal(find("number_2")->state, RT_IF_GONE);
	assert_int_equal(find("other_2")->state, RT_IF_PRESENT);
	assert_int_equal(find("other_2")->value, 1002);
	change_names = NULL;
	assert_int_equal(rte_eth_dev_stop(port), 0);
	test_stats_tick();
	assert_int_equal(rte_eth_dev_start(port), 0);
	test_stats_tick();
	assert_int_equal(find("number_2")->state, RT_IF_PRESENT);
	assert_int_equal(find("other_2")->state, RT_IF_GONE);
	assert_int_equal(name_calls, 3);
}

static void a_driver_with_other_statistics_than_before(void **state)
{
	begin_made_up(40);
	made_count = 30;
	test_stats_tick();
	assert_int_equal(name_calls, 2);
	assert_int_equal(find("number_29")->state, RT_IF_PRESENT);
	assert_int_equal(find("number_30")->state, RT_IF_GONE);
	made_count = 41;
	test_stats_tick();
	assert_int_equal(find("number_30")->state, RT_IF_PRESENT);
	assert_int_equal(rt_stat_current->header->xstat_count, 41);
}

static void names_without_end(struct rte_eth_xstat_name *x, unsigned n)
{
	memset(x[1].name, 'y', sizeof(x[1].name));
	strcpy(x[3].name, "number_2");
}

/* The first of two with one name is shown, the other one counted. */
static void names_that_no_driver_should_have(void **state)
{
	char longest[RT_NAME_LEN];

	change_names = names_without_end;
	begin_made_up(5);
	memset(longest, 'y', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(find(longest)->value, 1001);
	assert_int_equal(find("number_2")->value, 1002);
	test_monitor(&mon, RT_COLLECT_POOLS, 1);
	test_monitor(&mon, RT_COLLECT_XSTATS, 1); /* the same entries again */
	assert_int_equal(name_calls, 2);
	assert_int_equal(rt_stat_current->header->xstat_count, 4);
	assert_int_equal(beyond(), 1);
}

/* Which value has which name is unknown. */
static void other_names_than_values(void **state)
{
	name_excess = -1;
	begin_made_up(5);
	assert_int_equal(rt_stat_current->header->xstat_count, 0);
	assert_int_equal(beyond(), 5);
	name_excess = 0;
	test_stats_tick();
	assert_int_equal(find("number_4")->value, 1004);
	assert_int_equal(beyond(), 0);
	name_excess = 1;
	made_count = 4;
	test_stats_tick();
	assert_int_equal(find("number_0")->state, RT_IF_GONE);
	assert_int_equal(beyond(), 4);
}

static void count_more_each_time(struct rte_eth_xstat *x, unsigned n)
{
	made_count++;
}

static void a_count_that_changes_at_each_reading(void **state)
{
	begin_made_up(5);
	change = count_more_each_time; /* 5 values, of 6 names */
	for (unsigned i = 0; i < 9; i++)
		test_stats_tick();
	assert_int_equal(beyond(), 13);
	assert_int_equal(find("number_0")->state, RT_IF_GONE);
	change = NULL;
	test_stats_tick();
	assert_int_equal(find("number_13")->value, 1013);
}

static void with_wrong_numbers(struct rte_eth_xstat *x, unsigned n)
{
	x[0].id = n;
	x[1].id = UINT64_C(1) << 40;
	x[2].id = 3;
	x[2].value = 7;
	x[3].id = 2;
	x[3].value = 8;
}

static void values_belong_to_their_number(void **state)
{
	change = with_wrong_numbers;
	begin_made_up(10);
	assert_int_equal(find("number_0")->state, RT_IF_GONE);
	assert_int_equal(find("number_1")->state, RT_IF_GONE);
	assert_int_equal(find("number_2")->value, 8);
	assert_int_equal(find("number_3")->value, 7);
	assert_int_equal(find("number_4")->value, 1004);
}

static void more_than_there_is_room_for(void **state)
{
	begin_made_up(RT_STAT_PORT_XSTATS + 88);
	assert_int_equal(rt_stat_current->header->xstat_count, RT_STAT_PORT_XSTATS);
	assert_int_equal(beyond(), 88);
	test_stats_tick();
	assert_int_equal(name_calls, 1);
	made_count = RT_XSTATS_MAX;
	test_stats_tick();
	assert_int_equal(find("number_511")->value, 1511);
	assert_int_equal(beyond(), RT_XSTATS_MAX - RT_STAT_PORT_XSTATS);
	made_count = RT_XSTATS_MAX + 1;
	test_stats_tick();
	assert_int_equal(find("number_511")->state, RT_IF_GONE);
	assert_int_equal(beyond(), RT_XSTATS_MAX + 1);
	made_count = 3;
	test_stats_tick();
	assert_int_equal(find("number_2")->state, RT_IF_PRESENT);
	assert_int_equal(beyond(), 0);
}

/* The last values stay. */
static void drivers_that_fail(void **state)
{
	begin_made_up(3);
	made_count = (unsigned)-ENOTSUP;
	test_stats_tick();
	assert_int_equal(find("number_2")->value, 1002);
	assert_int_equal(find("number_2")->state, RT_IF_PRESENT);
	assert_int_equal(rt_stat_current->header->xstat_count, 3);
}

/* It may be about to be closed, or to be configured. */
static void drivers_of_stopped_ports_are_not_called(void **state)
{
	const struct rt_stat_xstat *x;

	test_port_send(port, 5);
	test_monitor(&mon, RT_COLLECT_XSTATS, 1);
	x = find("tx_good_packets");
	assert_int_equal(rte_eth_dev_stop(port), 0);
	value_calls = name_calls = 0;
	test_stats_tick();
	assert_int_equal(value_calls + name_calls, 0);
	assert_int_equal(x->state, RT_IF_PRESENT);
	assert_int_equal(x->value, 5);
	assert_int_equal(rte_eth_dev_start(port), 0);
	test_stats_tick();
	assert_int_equal(value_calls, 1);
}

static void a_port_that_comes_back_takes_its_entries(void **state)
{
	const struct rt_stat_xstat *x;
	uint32_t count;

	test_monitor(&mon, RT_COLLECT_XSTATS, 1);
	x = find("tx_good_packets");
	count = rt_stat_current->header->xstat_count;
	test_port_remove(port);
	test_stats_tick();
	assert_int_equal(x->state, RT_IF_GONE);
	port = test_port_make("net_ring_0");
	test_port_send(port, 2);
	test_stats_tick();
	assert_int_equal(x->state, RT_IF_PRESENT);
	assert_int_equal(x->value, 2);
	assert_int_equal(rt_stat_current->header->xstat_count, count);
}

static void remove_it(struct rte_eth_xstat *x, unsigned n)
{
	change = NULL;
	x[2].value = 5;
	test_port_remove(port);
}

/* The application closes it while its driver counts, and does not wait for long. */
static void a_port_that_goes_meanwhile(void **state)
{
	const struct rt_stat_xstat *x;

	begin_made_up(3);
	x = find("number_2");
	assert_int_equal(x->value, 1002);
	change = remove_it;
	value_calls = name_calls = 0;
	test_stats_tick();
	assert_int_equal(value_calls, 1);
	assert_int_equal(x->value, 1002);
	test_stats_tick();
	assert_int_equal(value_calls, 1);
	assert_int_equal(name_calls, 0);
	assert_int_equal(x->state, RT_IF_GONE);
	port = test_port_make("net_ring_0");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(they_are_those_of_the_driver),
		CASE(only_with_their_collector),
		CASE(names_are_read_once),
		CASE(names_are_read_again_when_they_may_have_changed),
		CASE(names_that_no_driver_should_have),
		CASE(other_names_than_values),
		CASE(a_count_that_changes_at_each_reading),
		CASE(a_driver_with_other_statistics_than_before),
		CASE(values_belong_to_their_number),
		CASE(more_than_there_is_room_for),
		CASE(drivers_that_fail),
		CASE(drivers_of_stopped_ports_are_not_called),
		CASE(a_port_that_comes_back_takes_its_entries),
		CASE(a_port_that_goes_meanwhile),
	};

	test_stats_start();
	return cmocka_run_group_tests_name("xstats", tests, NULL, NULL);
}
