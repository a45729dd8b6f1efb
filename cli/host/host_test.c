/* SPDX-License-Identifier: BSD-3-Clause */
/* ringtap host: what it refuses, and the command line of the program that it starts. Interfaces and
 * CPUs are made up. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "cli/fake_reader.h"
#include "cli/test_command.h"
#include "host.h"

static struct netdev eth0, eth1;
static int allowed;

int netdev_get(const char *name, struct netdev *out)
{
	if (strlen(name) > 15)
		return -ENAMETOOLONG;
	if (!strncmp(name, "no-", 3))
		return -ENODEV;
	*out = strcmp(name, "eth1") ? eth0 : eth1;
	return 0;
}

int netdev_allowed(void)
{
	return allowed;
}

/* CPUs 0, 2, 3 and 9. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	CPU_ZERO_S(size, set);
	CPU_SET_S(0, size, set);
	CPU_SET_S(2, size, set);
	CPU_SET_S(3, size, set);
	CPU_SET_S(9, size, set);
	return 0;
}

static int set_up(void **state)
{
	eth0 = eth1 =
		(struct netdev){.linktype = NETDEV_ETHERNET, .mtu = 1500, .queues = 4, .up = true};
	eth1.mtu = 9000;
	allowed = 0;
	fake = (struct fake){.apps = 2};
	return 0;
}

/* The arguments in one line. */
static const char *arguments(struct host_config *h)
{
	static char line[4096];
	struct host_args a = {0};
	size_t at = 0;

	if (!h->iface_count) {
		h->ifaces[0] = "eth0";
		h->iface_count = 1;
	}
	h->buffer = h->buffer ? h->buffer : 64 << 20;
	assert_int_equal(host_check(h), 0);
	assert_int_equal(host_args(h, &a), 0);
	for (int i = 0; i < a.argc; i++)
		at += (size_t)snprintf(
			line + at, sizeof(line) - at, "%s%s", i ? " " : "", a.argv[i]);
	host_args_free(&a);
	return line;
}

static void test_refusals_of_interfaces_names_and_cpus(void **state)
{
	static const struct test_refusal refusals[] = {
		{"no-such-if0", STATUS_FAILED,
			"host: no-such-if0: no such interface; see 'ip link'"},
		{"an-interface-of-a-long-name", STATUS_FAILED,
			"an-interface-of-a-long-name: longer than an interface's name can be"},
		{"--name a eth0.5:1", STATUS_USAGE,
			"host: eth0.5:1: DPDK does not accept this name"},
		{"--name 1234567890123456789012345678901234567890123456789012345678901234 lo",
			STATUS_USAGE, "too long a name; give one of at most 63 characters"},
		{"--name .hidden lo", STATUS_USAGE, "--name '.hidden': give letters, digits"},
		{"--name app1 lo", STATUS_FAILED, "an application called app1 runs already"},
		{"--cpus 1 lo", STATUS_USAGE, "--cpus 1: not a list of usable CPUs"},
		{"--cpus 0-2 lo", STATUS_USAGE, "--cpus 0-2: not a list"},
		{"--cpus 3-2 lo", STATUS_USAGE, "--cpus 3-2: not a list"},
		{"--cpus 0- lo", STATUS_USAGE, "--cpus 0-: not a list"},
		{"--cpus 0, lo", STATUS_USAGE, "--cpus 0,: not a list"},
		{"--cpus ,0 lo", STATUS_USAGE, "--cpus ,0: not a list"},
		{"--cpus 0;2 lo", STATUS_USAGE, "--cpus 0;2: not a list"},
		{"--cpus 4000 lo", STATUS_USAGE, "--cpus 4000: not a list"},
		{"--cpus 99999 lo", STATUS_USAGE, "--cpus 99999: not a list"},
	};

	test_refusals(&cmd_host, refusals, sizeof(refusals) / sizeof(refusals[0]));
}

static void test_an_empty_name(void **state)
{
	struct host_config h = {.ifaces = {"lo"}, .iface_count = 1, .name = ""};

	assert_int_equal(host_check(&h), -EINVAL);
	test_assert_has(message_last(), "host: --name: empty; leave it out or give one");
}

static void test_types_of_interfaces(void **state)
{
	static const struct test_refusal unknown = {"lo", STATUS_FAILED,
		"host: lo: packets of its type (ARPHRD 280, see 'ip link') are not supported; use "
		"tcpdump or dumpcap"};
	static const struct test_refusal xdp = {"--driver af_xdp lo", STATUS_USAGE,
		"host: lo: AF_XDP receives from Ethernet interfaces only; leave out --driver"};
	struct host_config h = {0};

	eth0.linktype = NETDEV_RAW;
	test_assert_has(arguments(&h), " eth0=packet,link=101,queues=1,");
	test_refusals(&cmd_host, &xdp, 1);
	eth0 = (struct netdev){.arphrd = 280, .mtu = 72};
	test_refusals(&cmd_host, &unknown, 1);
}

static void test_without_rights(void **state)
{
	static const struct test_refusal refusal = {"lo", STATUS_FAILED,
		"host: opening a packet socket: Operation not permitted; run it as root"};

	allowed = -EPERM;
	test_refusals(&cmd_host, &refusal, 1);
}

static void test_names_are_made_of_interfaces(void **state)
{
	struct host_config h = {.ifaces = {"lo", "eth0.5"}, .iface_count = 2};

	assert_int_equal(host_check(&h), 0);
	assert_string_equal(h.own_name, "host-lo-eth0.5");
	assert_string_equal(h.all, "lo, eth0.5");
	h.name = "mine";
	assert_int_equal(host_check(&h), 0);
	assert_string_equal(h.own_name, "mine");
}

static void test_many_interfaces_need_a_name(void **state)
{
	struct host_config h = {.iface_count = 8};

	for (unsigned i = 0; i < 8; i++)
		h.ifaces[i] = "interface-long";
	assert_int_equal(host_check(&h), -EINVAL);
	test_assert_has(message_last(), "too long a name");
}

static void test_an_interface_that_is_down_is_reported(void **state)
{
	struct host_config h = {.ifaces = {"lo"}, .iface_count = 1};

	eth0.up = false;
	assert_int_equal(host_check(&h), 0);
	test_assert_has(
		message_last(), "host: lo: it is down: no packets until 'ip link set lo up'");
}

static void test_cpus_of_a_list(void **state)
{
	struct host_config h = {.ifaces = {"lo"}, .iface_count = 1, .cpus = "2-3,0"};

	assert_int_equal(host_check(&h), 0);
	assert_int_equal(h.cpu_count, 3);
	assert_int_equal(h.cpu_list[0], 2);
	assert_int_equal(h.cpu_list[1], 3);
	assert_int_equal(h.cpu_list[2], 0);
}

static void test_arguments_by_default(void **state)
{
	struct host_config h = {0};

	/* (512 + 1024) mbufs of 2048 + 512 bytes, and 48 MiB. */
	assert_string_equal(arguments(&h),
		"ringtap-host --no-huge --log-level=*:emergency -m 52 --no-pci --file-prefix "
		"host-eth0 --lcores (0,1)@(0,2,3,9) -- -q1 -d2048 -n512 -p "
		"eth0=packet,link=1,queues=1,framesz=2048,blocksz=65536,framecnt=32768");
}

static void test_arguments_of_all_options(void **state)
{
	struct host_config h = {.ifaces = {"eth0", "eth1"},
		.iface_count = 2,
		.name = "mine",
		.cpus = "2,9",
		.queues = 2,
		.buffer = 65536,
		.memory = 100 << 20,
		.no_promiscuous = true,
		.busy_poll = true,
		.verbose = true};

	assert_string_equal(arguments(&h),
		"ringtap-host --no-huge -m 100 --no-pci --file-prefix mine --lcores "
		"0@(0,2,3,9),1@2,2@9 -- -q2 -d16384 -n512 -b -v "
		"eth0=packet,link=1,queues=2,framesz=2048,blocksz=65536,framecnt=32 "
		"eth1=packet,link=1,queues=2,framesz=16384,blocksz=65536,framecnt=4");
}

static void test_af_xdp_takes_all_queues(void **state)
{
	struct host_config h = {.driver = HOST_AF_XDP};

	test_assert_has(arguments(&h), " -- -q4 -d2048 -n12288 -p "
				       "eth0=net_af_xdp_eth0,iface=eth0,queue_count=4");
	h = (struct host_config){.driver = HOST_AF_XDP, .queues = 3};
	test_assert_has(arguments(&h), "queue_count=3");
}

/* Frames are a power of two around the packet and the kernel's header, and large ones whole pages,
 * of which blocks of 2 MiB have as many as fit. */
static void test_frames(void **state)
{
	static const struct {
		uint32_t mtu, frame;
		bool merges;
		const char *size;
	} cases[] = {
		{1500, 0, false, "framesz=2048,blocksz=65536"},
		{1960, 0, false, "framesz=2048,blocksz=65536"}, /* 22 and 66 bytes around it */
		{1961, 0, false, "framesz=4096,blocksz=65536"},
		{32000, 0, false, "framesz=32768,blocksz=65536"},
		{32700, 0, false, "framesz=36864,blocksz=2064384"},
		{1500, 0, true, "framesz=69632,blocksz=2088960"},
		{70000, 0, true, "framesz=73728,blocksz=2064384"},
		{1500, 100, true, "framesz=2048,blocksz=65536"},
		{1500, 1982, false, "framesz=2048,blocksz=65536"},
		{1500, 1983, false, "framesz=4096,blocksz=65536"},
		{65535, 0, false, "framesz=69632,blocksz=2088960"},
		{1500, HOST_FRAME_MAX, false, "framesz=266240,blocksz=1863680"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct host_config h = {.frame = cases[i].frame};

		eth0.mtu = cases[i].mtu;
		eth0.merges = cases[i].merges;
		test_assert_has(arguments(&h), cases[i].size);
	}
}

static void test_memory(void **state)
{
	struct host_config h = {0};

	arguments(&h);
	assert_int_equal(host_memory(&h), (512 + 1024) * (2048 + 512) + (48 << 20));
	h.queues = 4;
	assert_int_equal(host_memory(&h), (4 * 512 + 1024) * (2048 + 512) + (48 << 20));
	h.driver = HOST_AF_XDP;
	assert_int_equal(host_memory(&h), (4 * 12288 + 1024) * (2048 + 512) + (48 << 20));
	h.memory = 5;
	assert_int_equal(host_memory(&h), 5);
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_refusals_of_interfaces_names_and_cpus),
		TEST(test_an_empty_name),
		TEST(test_types_of_interfaces),
		TEST(test_without_rights),
		TEST(test_names_are_made_of_interfaces),
		TEST(test_many_interfaces_need_a_name),
		TEST(test_an_interface_that_is_down_is_reported),
		TEST(test_cpus_of_a_list),
		TEST(test_arguments_by_default),
		TEST(test_arguments_of_all_options),
		TEST(test_af_xdp_takes_all_queues),
		TEST(test_frames),
		TEST(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
