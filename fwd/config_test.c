/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "options.h"
#include "parse.h"
#include "base/util.h"

#define ARGS_MAX 256

static struct fwd_config c;

/* Parses a command line, split at blanks. */
static int parse(const char *line)
{
	static char copy[16384];
	char *argv[ARGS_MAX + 1] = {"ringtap-fwd"};
	int argc = 1, ret;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w && argc < ARGS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	config_init(&c);
	ret = options_parse(&cmd_fwd, argc, argv, &c);
	return ret > 0 ? config_check(&c) : ret;
}

/* Parsing the line fails, and the message of one line contains both texts. */
static void refused(const char *line, const char *what, const char *advice)
{
	if (parse(line) >= 0)
		fail_msg("not refused: %s", line);
	if (!strstr(message_last(), what) || !strstr(message_last(), advice))
		fail_msg("%s: printed: %s", line, message_last());
	assert_null(strchr(message_last(), '\n'));
}

static void units(void **state)
{
	static const char *const lines[] = {
		"--role echo:0 --mbuf-size 2048 --interval 120s --dpdk-memory 1024MiB",
		"--role echo:0 --mbuf-size 2k --interval 2min --dpdk-memory 1G"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(parse(lines[i]), 0);
		assert_int_equal(c.buffer_size, 2048);
		assert_int_equal(c.stats_ns, 120 * NS_PER_S);
		assert_int_equal(c.eal_bytes, 1 << 30);
	}
	refused("--role echo:0 --interval 5", "--interval: '5' has no unit", "5s or 5ms?");
	refused("--role echo:0 --interval 2h", "out of range", "1s to 1h");
	refused("--role echo:0 --dpdk-memory 64", "--dpdk-memory: '64' has no unit", "64M or 64K?");
	refused("--role echo:0 --dpdk-memory 15M", "out of range", "16M to");
	refused("--role echo:0 --duration 5", "--duration: '5' has no unit", "5s or 5ms?");
}

static void roles(void **state)
{
	struct role_spec r;

	assert_int_equal(parse_role("forward:0,net_ring1@12", &r), 0);
	assert_int_equal(r.kind, ROLE_FORWARD);
	assert_string_equal(r.ports[0], "0");
	assert_string_equal(r.ports[1], "net_ring1");
	assert_int_equal(r.cpu, 12);
	assert_int_equal(parse_role("echo:0000:03:00.0", &r), 0);
	assert_string_equal(r.ports[0], "0000:03:00.0");
	assert_int_equal(r.cpu, ANY_CPU);
	assert_int_equal(parse_role("generate:a", &r), 0);
	assert_int_equal(parse_role("sink:b@0", &r), 0);
	static const char *const wrong[] = {"", "forward", "forward:", "forward:0", "forward:0,",
		"forward:,0", "forward:0,1,2", "echo:0,1", "echo:", "echo:@1", "echo:0@",
		"echo:0@x", "echo:0@-1", "echo:0@5000", "nothing:0", "fwd:0,1", "sink@1", "@1:sink",
		"sink:0123456789012345678901234567890123456789012345678901234567890123"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!parse_role(wrong[i], &r))
			fail_msg("not refused: %s", wrong[i]);
}

static void rates(void **state)
{
	uint64_t rate;
	static const struct {
		const char *text;
		uint64_t rate;
	} good[] = {{"1", 1}, {"1000", 1000}, {"1k", 1000}, {"1.5M", 1500000}, {"5M", 5000000},
		{"0.25k", 250}, {"1G", 1000000000}, {"max", RATE_UNLIMITED}};
	static const char *const wrong[] = {"", "0", "k", "5m", "1x", "1kk", "-1", "1.", ".5",
		"1e6", "inf", "nan", "0x10", " 1", "1 ", "2G", "0.5", "1.5", "99999999999999999999",
		"maxx"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(parse_rate(good[i].text, false, &rate), 0);
		assert_int_equal(rate, good[i].rate);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!parse_rate(wrong[i], false, &rate))
			fail_msg("not refused: %s", wrong[i]);
	assert_int_equal(parse_rate("0", true, &rate), 0);
}

static void rates_with_three_decimals(void **state)
{
	uint64_t rate;
	char text[16];

	for (unsigned n = 1; n < 1000000; n++) {
		snprintf(text, sizeof(text), "%u.%03uk", n / 1000, n % 1000);
		if (parse_rate(text, false, &rate) || rate != n)
			fail_msg("%s: not taken for %u", text, n);
	}
	assert_int_equal(parse_rate("14.880952M", false, &rate), 0);
	assert_int_equal(rate, 14880952);
	assert_int_equal(parse_rate("0.999999999G", false, &rate), 0);
	assert_int_equal(rate, 999999999);
	assert_int_equal(parse_rate("1.0005k", false, &rate), -EINVAL);
	assert_int_equal(parse_rate("1.000000001G", false, &rate), -ERANGE);
	assert_int_equal(parse_rate("1.5k/s", false, &rate), 0);
	assert_int_equal(rate, 1500);
}

static void stages(void **state)
{
	struct stage s[STAGES_MAX];
	char many[512] = "1:1s";
	unsigned n = 0;

	assert_int_equal(parse_stages("10M:5s,0:250ms,max:1.5s,1k/s:2m,7:3s", s, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(s[0].rate, 10000000);
	assert_int_equal(s[0].ns, 5000000000);
	assert_int_equal(s[1].rate, 0);
	assert_int_equal(s[1].ns, 250000000);
	assert_int_equal(s[2].rate, RATE_UNLIMITED);
	assert_int_equal(s[2].ns, 1500000000);
	assert_int_equal(s[3].ns, 120000000000);
	assert_int_equal(s[4].ns, 3000000000);
	static const char *const wrong[] = {"", "10M", "10M:", ":5s", "10M:5s,", ",10M:5s",
		"10M:0s", "10M:-1s", "10M:5x", "10M:5", "10M:0", "10M:5s 1M:5s", "2G:1s", "10M;5s"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!parse_stages(wrong[i], s, &n))
			fail_msg("not refused: %s", wrong[i]);
	for (unsigned i = 1; i < STAGES_MAX; i++)
		strcat(many, ",1:1s");
	assert_int_equal(parse_stages(many, s, &n), 0);
	assert_int_equal(n, STAGES_MAX);
	strcat(many, ",1:1s");
	assert_true(parse_stages(many, s, &n) < 0);
}

static void sizes(void **state)
{
	uint16_t s[SIZES_MAX];
	unsigned n, count[3] = {0};

	assert_int_equal(parse_sizes("64", s, &n), 0);
	assert_true(n == 1 && s[0] == 64);
	assert_int_equal(parse_sizes("imix", s, &n), 0);
	assert_int_equal(n, 12);
	for (unsigned i = 0; i < n; i++)
		count[s[i] == 60 ? 0 : s[i] == 590 ? 1 : 2]++;
	assert_true(count[0] == 7 && count[1] == 4 && count[2] == 1);
	static const char *const wrong[] = {"", "59", "9601", "60x", "60x0", "x7", "60,,60",
		"60x65", "60x40,61x40", "abc", "60x-1", "60x7,"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!parse_sizes(wrong[i], s, &n))
			fail_msg("not refused: %s", wrong[i]);
}

static void policies_and_addresses(void **state)
{
	struct tx_full p;
	uint8_t mac[6];

	assert_true(!parse_tx_full("drop", &p) && !p.retry);
	assert_true(!parse_tx_full("retry", &p) && p.retry && !p.tries);
	assert_true(!parse_tx_full("retry:5", &p) && p.retry && p.tries == 5);
	assert_true(parse_tx_full("retry:0", &p) < 0);
	assert_true(parse_tx_full("retry:", &p) < 0);
	assert_true(parse_tx_full("wait", &p) < 0);
	assert_int_equal(parse_mac("02:00:5e:10:Ff:01", mac), 0);
	assert_memory_equal(mac, "\x02\x00\x5e\x10\xff\x01", 6);
	assert_true(parse_mac("02:00:5e:10:ff", mac) < 0);
	assert_true(parse_mac("02:00:5e:10:ff:01:", mac) < 0);
	assert_true(parse_mac("2:0:5e:10:ff:1", mac) < 0);
}

static void a_whole_line(void **state)
{
	assert_int_equal(
		parse("--role generate:a@0 --role oneway:a,b@1 --role sink:b --stages 1M:1s,2M:1s "
		      "--pool-memory 4k --pool-order stack --tx-full retry --json --frame udp"),
		0);
	assert_int_equal(c.role_count, 3);
	assert_int_equal(c.stage_count, 2);
	assert_int_equal(c.memory, MEMORY_4K);
	assert_int_equal(c.order, ORDER_STACK);
	assert_true(c.tx_full.retry && c.json);
	assert_int_equal(c.burst, 32);
	assert_int_equal(parse("--role echo:eth0 --plane packet"), 0);
	assert_int_equal(c.burst, 1);
}

static void errors_are_one_line(void **state)
{
	refused("", "--role", "give one");
	refused("--role fly:0", "--role fly:0", "forward:A,B");
	refused("--role generate:a --rate 5000G", "out of range", "1 to 1G");
	refused("--role generate:a --rate fast", "invalid value", "1 to 1G");
	refused("--role generate:a --rate 5000G", "--rate 5000G", "1 to 1G");
	refused("--role generate:a --rate fast", "--rate fast", "1 to 1G");
	refused("--role echo:a --burst 0", "--burst 0", "1 to 256");
	refused("--role generate:a --stages 1M:0s", "--stages 1M:0s", "RATE:TIME");
	refused("--role generate:a --dst-mac 02", "--dst-mac 02", "02:00:00:00:00:01");
	refused("--role generate:a --src-ip 1.2.3", "--src-ip 1.2.3", "IPv4");
	refused("--role generate:a --dst-ip x", "--dst-ip x", "IPv4");
	refused("--role sink:a --sink-rate 0", "--sink-rate 0", "1 to 1G");
	refused("--role echo:a --duration 0s", "--duration 0s", "give 1ns or more");
	refused("--role echo:a --linger x", "--linger x", "not a time");
	refused("--role echo:a --link-wait -1s", "--link-wait -1s", "not a time");
	refused("--role generate:a --rtt --timeout 0s", "--timeout 0s", "give 1ns or");
	refused("--role echo:a --samples f --plane packet", "--samples", "--plane dpdk");
	refused("--role generate:a --samples f", "--samples", "receives");
	refused("--role sink:a --latency-sample 1", "--latency-sample", "--rtt");
	refused("--role sink:a --samples f --sample-run 65", "--sample-run", "--sample");
	refused("--role sink:a --plane packet --vdev net_null0", "--vdev", "--plane dpdk");
	refused("--role sink:a --plane packet --pool-order stack", "--pool-order", "--plane dpdk");
	refused("--role sink:a --sleep", "--sleep", "packet-mmap");
	refused("--role forward:a,b --plane packet --sleep", "--sleep", "oneway");
	refused("--role generate:a --plane packet --sleep --rtt", "--sleep", "--outstanding");
	refused("--role generate:a --replay f --rtt", "--rtt", "--replay");
	refused("--role echo", "--role echo", "echo:A");
	refused("--role generate:a --rate 0", "--rate 0", "1 to 1G");
	refused("--role generate:a --rate 1000G", "--rate 1000G", "1 to 1G");
	refused("--role generate:a --rate -5", "--rate -5", "give");
	refused("--role generate:a --stages 1M", "--stages", "RATE:TIME");
	refused("--role generate:a --sizes 10 --frame udp", "--sizes 10", "60 to 9600");
	refused("--role generate:a --sizes 1514", "--sizes", "udp");
	refused("--role generate:a --frame udp --sizes 9000", "--sizes", "--mbuf-size");
	refused("--role echo:a --rtt", "--rtt", "generate");
	refused("--role generate:a --outstanding 1", "--outstanding", "--rtt");
	refused("--role generate:a --timing", "--timing", "--replay");
	refused("--role generate:a --replay f --timing --rate 1000", "--timing", "--rate");
	refused("--role generate:a --replay f --timing --stages 5:1s", "--timing", "--stages");
	refused("--role generate:a --replay f --timing --poisson", "--timing", "--poisson");
	assert_int_equal(parse("--role generate:a --replay f --timing --packets 9"), 0);
	refused("--role echo:a --plane packet --pool-memory 4k", "--pool-memory", "--plane dpdk");
	refused("--role echo:a --pool-memory 8k", "--pool-memory 8k", "dpdk|4k");
	refused("--role echo:a --pool-memory gpu --mac-swap", "--pool-memory gpu",
		"remove --mac-swap");
	refused("--role generate:a --pool-memory gpu --rtt", "--pool-memory gpu", "--rtt");
	refused("--role generate:a --pool-memory gpu --replay f", "--pool-memory gpu", "--replay");
	refused("--role echo:a --plane packet --pool-memory gpu-pinned", "--pool-memory",
		"--plane dpdk");
	refused("--role echo:a --pool-memory gpu-host", "gpu-host", "gpu-managed");
	assert_int_equal(parse("--role generate:a --role sink:b --pool-memory gpu"), 0);
	assert_int_equal(parse("--role generate:a --rtt --pool-memory gpu-managed"), 0);
	assert_int_equal(c.memory, MEMORY_GPU_MANAGED);
	assert_int_equal(parse("--role echo:a --mac-swap --pool-memory gpu-pinned"), 0);
	assert_int_equal(c.memory, MEMORY_GPU_PINNED);
	refused("--role echo:a --tx-full never", "--tx-full never", "retry");
	refused("--role echo:a --nonsense", "--nonsense", "--help");
	refused("--role echo:a --burst 1000", "--burst 1000", "1 to 256");
	refused("--role echo:a --dur 1s", "--dur: unknown option", "did you mean '--duration'?");
	refused("--role echo:a --name ../x", "--name ../x", "without a /");
	refused("--role echo:a --name /", "--name /", "without a /");
	refused("--role echo:a --name ..", "--name ..", "without a /");
	refused("--role echo:a --name .", "--name .", "without a /");
	refused("--role echo:a --name=", "--name", "a name");
	refused("--role echo:a nonsense", "nonsense", "--help");
}

/* As the option is given once too often, the message names the last one. */
static void too_many(const char *option, const char *value, int most)
{
	char line[16384];
	size_t n = (size_t)snprintf(line, sizeof(line), "--role echo:a");

	for (int i = 0; i < most; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " %s %s", option, value);
	if (strcmp(option, "--role"))
		assert_int_equal(parse(line), 0);
	snprintf(line + n, sizeof(line) - n, " %s last", option);
	refused(line, "last", "too many");
}

static void devices_and_roles_are_limited(void **state)
{
	(void)state;
	too_many("--vdev", "net_null0", DEVICES_MAX);
	too_many("--ring", "a", DEVICES_MAX);
	too_many("--pci", "00:01.0", DEVICES_MAX);
}

static void limits_of_a_name(void **state)
{
	char line[256] = "--role echo:a --name ";
	size_t n = strlen(line);

	(void)state;
	memset(line + n, 'x', 200);
	assert_int_equal(parse(line), 0);
	line[n + 200] = 'x';
	refused(line, "--name", "200");
	assert_int_equal(parse("--role echo:a --name .x"), 0);
	assert_string_equal(c.name, ".x");
}

static void all_values_arrive(void **state)
{
	(void)state;
	assert_int_equal(
		parse("--role generate:a --rtt --outstanding 3 --timeout 2s --packets 7 --stream 240 "
		      "--seed 9 --poisson --page-size 1G --rate 5k"),
		0);
	assert_true(c.rtt && c.poisson);
	assert_int_equal(c.outstanding, 3);
	assert_int_equal(c.timeout_ns, 2000000000);
	assert_int_equal(c.count, 7);
	assert_int_equal(c.stream, 240);
	assert_int_equal(c.seed, 9);
	assert_int_equal(c.page_size, 1 << 30);
	assert_int_equal(c.stages[0].rate, 5000);
	assert_int_equal(parse("--role sink:a --sink-rate max --duration 300ms --linger 1s"), 0);
	assert_int_equal(c.sink_rate, 0);
	assert_int_equal(c.duration_ns, 300000000);
	assert_int_equal(c.linger_ns, 1000000000);
	assert_int_equal(c.link_ns, 5000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units),
		cmocka_unit_test(roles),
		cmocka_unit_test(rates),
		cmocka_unit_test(rates_with_three_decimals),
		cmocka_unit_test(stages),
		cmocka_unit_test(sizes),
		cmocka_unit_test(policies_and_addresses),
		cmocka_unit_test(a_whole_line),
		cmocka_unit_test(errors_are_one_line),
		cmocka_unit_test(devices_and_roles_are_limited),
		cmocka_unit_test(limits_of_a_name),
		cmocka_unit_test(all_values_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
