/* SPDX-License-Identifier: BSD-3-Clause */
/* VPP's statistics segment, which this process plays, and its socket, behind which a thread is.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/test_util.h"
#include "interfaces.h"

#define BASE    0x130000000ull /* where VPP has it */
#define THREADS 2
#define ERRORS  4
#define ENTRIES 8
#define NAMES   6 /* interfaces */

static const char acl[] = "acl-plugin-in-ip4-fa/ACL deny packets";

/* Vectors have their length in front of them. */
static struct segment {
	uint64_t version, base, epoch, in_progress, directory;
	struct {
		uint32_t count, rest;
		struct {
			uint32_t type, pad;
			uint32_t entry, index;
			char name[128];
		} list[ENTRIES];
	} directory_vector;
	struct {
		uint32_t count, rest;
		uint64_t list[THREADS];
	} threads;
	/* Interfaces. */
	struct {
		uint32_t count, rest;
		uint64_t list[NAMES];
	} names;
	struct {
		uint32_t count, rest;
		char text[32];
	} name[NAMES];
	struct {
		uint32_t count, rest;
		uint64_t list[2 * NAMES]; /* packets and bytes */
	} packets[2];
	struct {
		uint32_t count, rest;
		uint64_t list[1];
	} thread[2];
	struct {
		uint32_t count, rest;
		uint64_t list[ERRORS];
	} errors[THREADS];
} segment;

static int segment_fd = -1;

static uint64_t pointer_to(const void *p)
{
	return BASE + (uint64_t)((const char *)p - (const char *)&segment);
}

static void add(unsigned i, uint32_t type, uint32_t entry, uint32_t index, const char *name)
{
	segment.directory_vector.list[i].type = type;
	segment.directory_vector.list[i].entry = entry;
	segment.directory_vector.list[i].index = index;
	snprintf(segment.directory_vector.list[i].name, 128, "%s", name);
}

static void fill(void)
{
	uint64_t at = pointer_to(segment.threads.list);

	segment = (struct segment){.version = 2,
		.base = BASE,
		.epoch = 7,
		.directory = pointer_to(segment.directory_vector.list)};
	segment.directory_vector.count = ENTRIES;
	segment.threads.count = THREADS;
	add(1, 1, 9, 0, "/sys/heartbeat");
	add(2, 2, (uint32_t)at, (uint32_t)(at >> 32), "/node/errors");
	add(3, 6, 2, 1, "/err/acl-plugin-in-ip4-fa/ACL deny packets");
	add(4, 6, 2, 3, "/err/ip4-input/ip4 ttl <= 1");
	add(5, 6, 2, 2, "/err/null-node/blackholed packets");
	add(6, 6, 2, ERRORS, "/err/beyond/the vector");
	add(7, 6, 1, 1, "/err/of/another vector");
	for (unsigned i = 0; i < THREADS; i++) {
		segment.threads.list[i] = pointer_to(segment.errors[i].list);
		segment.errors[i].count = ERRORS;
		segment.errors[i].list[0] = 1000;
		segment.errors[i].list[1] = 100 + i;
		segment.errors[i].list[3] = i;
	}
}

/* A directory of interfaces, of which the first has received 10 packets, the next 11 and so on, and
 * sent none. */
static void fill_interfaces(const char *const *names)
{
	uint64_t at[] = {pointer_to(segment.thread[0].list), pointer_to(segment.thread[1].list),
		pointer_to(segment.names.list)};

	fill();
	add(1, 3, (uint32_t)at[0], (uint32_t)(at[0] >> 32), "/if/rx");
	add(2, 3, (uint32_t)at[1], (uint32_t)(at[1] >> 32), "/if/tx");
	add(3, 4, (uint32_t)at[2], (uint32_t)(at[2] >> 32), "/if/names");
	for (unsigned i = 4; i < ENTRIES; i++)
		add(i, 6, 1, i - 4, "/interfaces/one/rx");
	segment.names.count = NAMES;
	for (unsigned i = 0; i < 2; i++) {
		segment.thread[i].count = 1;
		segment.thread[i].list[0] = pointer_to(segment.packets[i].list);
		segment.packets[i].count = NAMES;
	}
	for (unsigned i = 0; i < NAMES && names[i]; i++) {
		segment.names.list[i] = pointer_to(segment.name[i].text);
		segment.name[i].count = (uint32_t)strlen(names[i]) + 1;
		strcpy(segment.name[i].text, names[i]);
		segment.packets[0].list[2 * i] = 10 + i;
		segment.packets[0].list[2 * i + 1] = 1000;
	}
}

static void store(void)
{
	assert_int_equal(pwrite(segment_fd, &segment, sizeof(segment), 0), sizeof(segment));
}

static int set_up(void **state)
{
	segment_fd = memfd_create("stat segment", MFD_CLOEXEC);
	fill();
	store();
	return segment_fd < 0;
}

static int tear_down(void **state)
{
	return close(segment_fd);
}

static struct counted begun(void)
{
	struct counted c = {.source = &counted_vpp,
		.pid = getpid(),
		.own_pid = getpid(),
		.list = calloc(COUNTED_MAX, sizeof(struct counted_value))};

	assert_non_null(c.list);
	return c;
}

static void assert_takes(int ret, size_t count)
{
	struct counted c = begun();

	store();
	assert_int_equal(counted_take_segment(&c, segment_fd), ret);
	assert_int_equal(c.count, count);
	counted_free(&c);
	fill();
}

static void test_errors_are_added_up_over_threads(void **state)
{
	struct counted c = begun();

	assert_int_equal(counted_take_segment(&c, segment_fd), 0);
	assert_int_equal(c.count, 2); /* without those that are 0, and links that lead elsewhere */
	assert_string_equal(c.list[0].name, acl);
	assert_int_equal(c.list[0].end, 201);
	assert_string_equal(c.list[1].name, "ip4-input/ip4 ttl <= 1");
	assert_int_equal(c.list[1].end, 1);
	counted_free(&c);
	/* One that is known to count packets that go on is not the reason of others. */
	add(4, 6, 2, 1, "/err/acl-plugin-in-ip4-fa/checked packets");
	store();
	c = begun();
	assert_int_equal(counted_take_segment(&c, segment_fd), 0);
	assert_string_equal(c.list[1].meaning, "not dropped: counted on their way");
	c.list[0].begin = c.list[1].begin = 0;
	assert_int_equal(counted_match(&c, 201).packets, 201);
	assert_true(counted_match(&c, 201).used[0]);
	counted_free(&c);
	/* Before any node has registered an error. */
	add(2, 5, 0, 0, "");
	assert_takes(0, 0);
}

static void test_a_directory_that_changes_is_read_later(void **state)
{
	segment.in_progress = 1;
	assert_takes(-EAGAIN, 0);
	/* Also if pointers are wrong meanwhile. */
	segment.in_progress = 1;
	segment.directory = 0;
	assert_takes(-EAGAIN, 0);
}

static void test_segments_that_lie(void **state)
{
	static const uint64_t pointers[] = {0, 1, 8, BASE - 1, BASE, BASE + 39, UINT64_MAX,
		BASE + sizeof(segment), BASE + INT64_MAX};
	const uint32_t counts[] = {ENTRIES + 1, 1 << 17, UINT32_MAX};

	segment.version = 3;
	assert_takes(-EPROTONOSUPPORT, 0);
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		segment.directory = pointers[i];
		assert_takes(-EPROTO, 0);
		add(2, 2, (uint32_t)pointers[i], (uint32_t)(pointers[i] >> 32), "/node/errors");
		assert_takes(-EPROTO, 0);
		segment.threads.list[1] = pointers[i];
		assert_takes(-EPROTO, 0);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		segment.threads.count = counts[i];
		assert_takes(-EPROTO, 0);
		segment.errors[1].count = counts[i];
		assert_takes(-EPROTO, 0);
	}
	segment.directory_vector.count = UINT32_MAX;
	assert_takes(-EPROTO, 0);
	memset(segment.directory_vector.list[4].name, 'x', 128);
	add(3, 6, 2, 1, "/err/\x1b[31mred/\xff");
	assert_takes(0, 0);
}

static void test_files_that_are_no_segment(void **state)
{
	struct counted c = begun();
	int fds[2];

	for (size_t len = sizeof(segment) - 8; len; len -= 8) {
		assert_int_equal(ftruncate(segment_fd, (off_t)len), 0);
		assert_int_equal(counted_take_segment(&c, segment_fd), -EPROTO);
	}
	assert_int_equal(pipe(fds), 0); /* would not be read in time */
	assert_int_equal(counted_take_segment(&c, fds[0]), -EPROTO);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(c.count, 0);
	counted_free(&c);
}

static struct counted_interfaces interfaces;

static void assert_interfaces(int ret, size_t count)
{
	store();
	assert_int_equal(counted_take_interfaces(&interfaces, segment_fd), ret);
	assert_int_equal(interfaces.count, count);
}

static void assert_interface(size_t i, const char *name, const char *kind, uint32_t port)
{
	assert_string_equal(interfaces.list[i].name, name);
	if (kind)
		assert_string_equal(interfaces.list[i].kind, kind);
	else
		assert_null(interfaces.list[i].kind);
	assert_int_equal(interfaces.list[i].port, port);
}

static void test_interfaces_and_their_ports(void **state)
{
	static const char *const names[NAMES] = {
		"local0", "GigabitEthernet0/8/0", "memif0/3", "my.eth", "gone"};
	static const char *const decimal[NAMES] = {
		"GigabitEthernet0/26/0", "Ethernet1", "host-eth0.5", "VirtualEthernet0/0/1"};
	static const char *const made[NAMES] = {
		"loop0", "Ethernet1.5", "vxlan_tunnel0", "BondEthernet0"};
	static const char *const domain[NAMES] = {
		"Ethernet-1/0/8/0", "rdma-0", "tapper", "TenGigabitEthernet0/8/0/1"};
	char text[160];

	memset(&interfaces, 0, sizeof(interfaces));
	fill_interfaces(names);
	assert_interfaces(0, 3); /* without the one that is deleted, and VPP's own */
	counted_interfaces_match(&interfaces, 4, "0000:00:08.0");
	assert_interface(0, "GigabitEthernet0/8/0", "DPDK", 4);
	assert_interface(1, "memif0/3", "memif", COUNTED_NO_PORT);
	assert_interface(2, "my.eth", NULL, COUNTED_NO_PORT);
	assert_int_equal(interfaces.list[1].rx, 12);
	assert_int_equal(interfaces.list[1].tx, 0);
	assert_int_equal(counted_interfaces_outside(&interfaces, text), 2);
	assert_string_equal(text, "a recording lacks the packets of 2 interfaces without a port");
	counted_interfaces_match(&interfaces, 5, "net_ring0"); /* my.eth, or not */
	assert_int_equal(counted_interfaces_outside(&interfaces, text), 2);
	assert_non_null(strstr(text, ", unless VPP's configuration gives these names to ports"));

	fill_interfaces(decimal);
	assert_interfaces(0, 4);
	counted_interfaces_match(&interfaces, 0, "0000:00:1a.0");
	counted_interfaces_match(&interfaces, 1, "net_af_packet0");
	assert_interface(0, "GigabitEthernet0/26/0", "DPDK", 0);
	assert_interface(1, "Ethernet1", "DPDK", 1);
	assert_interface(2, "host-eth0.5", "af_packet", COUNTED_NO_PORT);
	assert_interface(3, "VirtualEthernet0/0/1", "vhost-user", COUNTED_NO_PORT);

	fill_interfaces(made);
	assert_interfaces(0, 0);

	fill_interfaces(domain);
	assert_interfaces(0, 4);
	counted_interfaces_match(&interfaces, 2, "0001:00:08.0");
	assert_interface(0, "Ethernet-1/0/8/0", "DPDK", 2);
	assert_interface(1, "rdma-0", "rdma", COUNTED_NO_PORT);
	assert_interface(2, "tapper", NULL, COUNTED_NO_PORT);
	assert_interface(3, "TenGigabitEthernet0/8/0/1", "DPDK", COUNTED_NO_PORT);
}

/* A counter of one thread at this entry, as fill_interfaces() has it for packets. */
static void add_simple(unsigned entry, unsigned packets, const char *name)
{
	uint64_t at = pointer_to(segment.thread[packets].list);

	add(entry, 2, (uint32_t)at, (uint32_t)(at >> 32), name);
}

static void test_packets_that_interfaces_lose(void **state)
{
	static const char *const names[NAMES] = {"GigabitEthernet0/8/0", "host-eth0"};
	struct counted c = begun();

	fill_interfaces(names);
	add_simple(1, 0, "/if/drops");
	add_simple(2, 1, "/if/rx-miss");
	segment.packets[1].list[1] = 5;
	add(5, 6, 2, 1, "/interfaces/host-eth0/rx-miss");
	add(6, 6, 1, 5, "/interfaces/no name/drops");
	add(7, 6, 2, 0, "/interfaces/GigabitEthernet0_8_0/rx-miss");
	store();
	assert_int_equal(counted_take_segment(&c, segment_fd), 0);
	assert_int_equal(c.count, 2); /* without those that are 0, or have no name */
	assert_string_equal(c.list[0].name, "GigabitEthernet0/8/0 drops");
	assert_int_equal(c.list[0].end, 10);
	assert_string_equal(c.list[1].name, "host-eth0 rx-miss");
	assert_string_equal(c.list[1].meaning, "missed by the NIC");
	assert_int_equal(c.list[1].end, 5);
	/* They have a counter with a reason, too: the same packets would be found twice. */
	c.begun = true;
	c.list[0].end = 20;
	assert_int_equal(counted_match(&c, 10).packets, 0);
	assert_non_null(counted_put(&c, acl, sizeof(acl) - 1, NULL, 10));
	assert_int_equal(counted_match(&c, 10).packets, 10);
	assert_true(counted_match(&c, 10).used[2]);
	counted_free(&c);

	segment.names.list[0] = BASE + sizeof(segment);
	assert_takes(0, 1); /* that of the other interface */
}

static void test_interfaces_that_lie(void **state)
{
	static const char *const names[NAMES] = {"memif0/0", "memif0/1", "memif0/2", "memif0/3"};
	static const uint64_t pointers[] = {
		1, 8, BASE - 1, BASE + 39, UINT64_MAX, BASE + sizeof(segment), BASE + INT64_MAX};

	fill_interfaces(names);
	assert_interfaces(0, 4);
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		fill_interfaces(names);
		segment.names.list[2] = pointers[i];
		assert_interfaces(-EPROTO, 0);
		fill_interfaces(names);
		segment.thread[1].list[0] = pointers[i];
		assert_interfaces(-EPROTO, 0);
		fill_interfaces(names);
		add(3, 4, (uint32_t)pointers[i], (uint32_t)(pointers[i] >> 32), "/if/names");
		assert_interfaces(-EPROTO, 0);
	}
	fill_interfaces(names);
	segment.packets[0].count = UINT32_MAX;
	assert_interfaces(-EPROTO, 0);
	fill_interfaces(names);
	segment.name[1].count = UINT32_MAX;
	assert_interfaces(-EPROTO, 0);
	/* No name, no counters, no such interface, and one that would reach a terminal. */
	fill_interfaces(names);
	segment.names.list[0] = 0;
	segment.name[1].count = 0;
	strcpy(segment.name[2].text, "memif\x1b[2J");
	add(7, 6, 1, UINT32_MAX, "/interfaces/one/rx");
	assert_interfaces(0, 0);
	fill_interfaces(names);
	segment.names.count = 1;
	segment.packets[1].count = 0;
	assert_interfaces(0, 1);
	assert_int_equal(interfaces.list[0].tx, 0);
}

static void test_more_interfaces_than_are_listed(void **state)
{
	char text[160];

	memset(&interfaces, 0, sizeof(interfaces));
	for (unsigned i = 0; i < COUNTED_INTERFACES_MAX + 2; i++)
		counted_put_interface(&interfaces, "memif0/0", 8, 1, 1);
	assert_int_equal(interfaces.count, COUNTED_INTERFACES_MAX);
	assert_int_equal(counted_interfaces_outside(&interfaces, text), COUNTED_INTERFACES_MAX + 2);
}

/* ---- its socket */

static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static int listener = -1, handed = -1; /* handed: -1: a message without a descriptor */
static bool silent;

static void *serve(void *arg)
{
	int sock;

	while ((sock = accept(listener, NULL, NULL)) >= 0) {
		char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
		struct iovec iov = {&byte, 1};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

		if (handed >= 0) {
			m.msg_control = control;
			m.msg_controllen = sizeof(control);
			CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
			CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
			CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &handed, sizeof(int));
		}
		if (!silent)
			(void)!sendmsg(sock, &m, MSG_NOSIGNAL);
		(void)!recv(sock, &byte, 1, 0); /* until the reader closes the connection */
		close(sock);
	}
	return NULL;
}

static pthread_t listens(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	pthread_t thread;

	snprintf(path, sizeof(path), "/tmp/rt-vpp-%d-stats.sock", (int)getpid());
	memcpy(addr.sun_path, path, sizeof(path));
	listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	return thread;
}

static void assert_fails_within(int within_ms, int error, const char *why)
{
	struct counted c = begun();

	assert_int_equal(counted_vpp.read(&c, within_ms), error);
	assert_non_null(strstr(c.why, why));
	assert_int_equal(c.count, 0);
	counted_free(&c);
}

static void assert_fails(int error, const char *why)
{
	assert_fails_within(50, error, why);
}

/* Each of them is silent: only the first one is waited for. */
static void assert_all_together_have_a_limit(void)
{
	uint64_t left_ns = 60000000;

	for (unsigned i = 0; i < 3; i++) {
		struct counted_interfaces *c =
			counted_interfaces_begin("vpp", getpid(), getpid(), &left_ns);

		assert_non_null(c);
		assert_non_null(strstr(c->counted.why,
			i ? "other applications have used the time" : "no answer within"));
		assert_true(left_ns < 1000000);
		counted_interfaces_free(c);
	}
}

static void test_its_socket(void **state)
{
	struct counted c;
	pthread_t thread;

	assert_fails(-ENOENT, "it has no socket of statistics (statseg)");
	thread = listens();
	handed = segment_fd;
	counted_begin(&c, "vpp", getpid(), getpid());
	assert_string_equal(c.why, "");
	segment.errors[0].list[1] += 7500;
	segment.errors[1].list[2] += 3;
	store();
	counted_end(&c, 7503);
	assert_string_equal(c.list[0].name, acl);
	assert_int_equal(counted_since(&c.list[0]), 7500);
	assert_string_equal(c.list[2].name, "null-node/blackholed packets");
	assert_int_equal(counted_since(&c.list[2]), 3);
	assert_int_equal(counted_match(&c, 7503).packets, 7503);
	counted_free(&c);

	segment.in_progress = 1;
	store();
	assert_fails(-ETIMEDOUT, "no answer within 50 ms");
	handed = -1;
	assert_fails(-EPROTO, "its answer cannot be read");
	silent = true;
	assert_fails(-ETIMEDOUT, "no answer within 50 ms");
	assert_all_together_have_a_limit();
	assert_fails_within(0, -ETIMEDOUT, "its open files: there are too many");
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	assert_fails(-ENOENT, "it has no socket of statistics (statseg)");
	unlink(path);
}

#define with_segment(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_segment(test_errors_are_added_up_over_threads),
		with_segment(test_a_directory_that_changes_is_read_later),
		with_segment(test_segments_that_lie),
		with_segment(test_files_that_are_no_segment),
		with_segment(test_interfaces_and_their_ports),
		with_segment(test_packets_that_interfaces_lose),
		with_segment(test_interfaces_that_lie),
		with_segment(test_more_interfaces_than_are_listed),
		with_segment(test_its_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
