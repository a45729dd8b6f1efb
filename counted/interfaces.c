/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "common/now.h"
#include "interfaces.h"
#include "show/sheet.h"

#define WITHIN_MS 2000
#define DPDK      "DPDK"

/* Prefixes of names, before a number, by driver. The names of DPDK's ports depend on driver
 * and speed: see port_number(). */
static const char *const kinds[][2] = {{"memif", "memif"}, {"tap", "tap"}, {"tun", "tap"},
	{"VirtualEthernet", "vhost-user"}, {"host-", "af_packet"}, {"rdma-", "rdma"},
	{"avf-", "avf"}, {"vmxnet3-", "vmxnet3"}, {"virtio-", "virtio"}};

/* Interfaces that VPP makes for packets of other interfaces, or for none. */
static const char *const made[] = {"local", "loop", "bvi", "pipe", "pg", "BondEthernet", "gre",
	"ipip", "ipsec", "wg", "mpls-tunnel", "lisp_gpe"};

/* The rest of a name, which begins so. NULL: it does not. */
static const char *after(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) ? NULL : name + len;
}

static const char *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const char *rest = after(name, kinds[i][0]);

		if (rest && (isdigit((unsigned char)*rest) || rest[-1] == '-'))
			return kinds[i][1];
	}
	return NULL;
}

static bool is_made(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		const char *rest = after(name, made[i]);

		if (rest && isdigit((unsigned char)*rest))
			return true;
	}
	/* A VLAN of another interface. The name of a device of the kernel may have a dot. */
	if (dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == 0)
		return !after(name, "host-");
	return strstr(name, "_tunnel") || after(name, "pppoe_session");
}

/* Where the number of a port begins in a name that VPP gives to ports of DPDK; NULL: it is none. */
static const char *port_number(const char *name)
{
	static const char *const others[] = {"EthernetSwitch", "VirtioUser", "af_packet", "NetVSC"};
	static const char ethernet[] = "Ethernet";
	const char *number = strstr(name, ethernet);

	number = number ? number + sizeof(ethernet) - 1 : NULL;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (after(name, others[i]))
			number = after(name, others[i]);
	return number && (isdigit((unsigned char)*number) || *number == '-') ? number : NULL;
}

void counted_put_interface(
	struct counted_interfaces *c, const char *name, size_t len, uint64_t rx, uint64_t tx)
{
	struct counted_interface *one = &c->list[c->count];

	for (size_t i = 0; i < len; i++)
		if (!isprint((unsigned char)name[i]))
			return;
	if (!len || len >= COUNTED_NAME_LEN)
		return;
	if (c->count == COUNTED_INTERFACES_MAX) {
		c->more++;
		return;
	}
	*one = (struct counted_interface){
		.port = COUNTED_NO_PORT, .rx = rx, .tx = tx, .rx_pps = NAN, .tx_pps = NAN};
	memcpy(one->name, name, len);
	if (is_made(one->name))
		return;
	one->kind = kind_of(one->name);
	if (!one->kind && port_number(one->name))
		one->kind = DPDK;
	c->count++;
}

static int read_all(struct counted_interfaces *c, uint64_t *left_ns)
{
	const uint64_t begun = rt_now_ns(CLOCK_MONOTONIC), left_ms = *left_ns / 1000000;
	uint64_t took;
	int ret;

	if (!left_ms) {
		snprintf(c->counted.why, sizeof(c->counted.why),
			"other applications have used the time for statistics");
		return -ETIMEDOUT;
	}
	c->counted.why[0] = 0;
	ret = counted_read_segment(&c->counted, left_ms < WITHIN_MS ? (int)left_ms : WITHIN_MS,
		counted_take_interfaces, c);
	took = rt_now_ns(CLOCK_MONOTONIC) - begun;
	*left_ns -= took < *left_ns ? took : *left_ns;
	return ret;
}

struct counted_interfaces *counted_interfaces_begin(
	const char *program, pid_t pid, pid_t own_pid, uint64_t *left_ns)
{
	struct counted_interfaces *c = NULL;

	if (after(program, counted_vpp.program))
		c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->counted = (struct counted){.source = &counted_vpp, .pid = pid, .own_pid = own_pid};
	if (!pid)
		snprintf(c->counted.why, sizeof(c->counted.why),
			"its process is not visible from here");
	else if (!read_all(c, left_ns))
		c->read_ns = rt_now_ns(CLOCK_MONOTONIC);
	return c;
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
	return now < before ? NAN : (double)(now - before) / seconds;
}

void counted_interfaces_end(struct counted_interfaces *c, uint64_t *left_ns)
{
	struct counted_interface *before = NULL;
	size_t count = c->count;
	double seconds;

	if (c->read_ns)
		before = malloc(sizeof(c->list));
	if (!before)
		return;
	memcpy(before, c->list, sizeof(c->list));
	(void)read_all(c, left_ns);
	seconds = (double)(rt_now_ns(CLOCK_MONOTONIC) - c->read_ns) / 1e9;
	for (size_t i = 0; i < c->count; i++) {
		struct counted_interface *one = &c->list[i];

		for (size_t k = 0; k < count; k++) {
			if (strcmp(before[k].name, one->name))
				continue;
			one->rx_pps = rate(before[k].rx, one->rx, seconds);
			one->tx_pps = rate(before[k].tx, one->tx, seconds);
			break;
		}
	}
	free(before);
}

/* Each name is tried in base 16, and in base 10 for interface-name-format-decimal. */
static bool is_named(const char *number, uint32_t port, const char *device)
{
	unsigned domain, bus, slot, function;
	char text[2][64];
	int rest = 0;

	if (sscanf(device, "%4x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &rest) == 4 &&
		!device[rest]) {
		snprintf(text[0], 64, "%x/%x/%x", bus, slot, function);
		snprintf(text[1], 64, "%u/%u/%u", bus, slot, function);
		if (domain && *number == '-') {
			snprintf(text[0], 64, "-%x/%x/%x/%x", domain, bus, slot, function);
			snprintf(text[1], 64, "-%u/%u/%u/%u", domain, bus, slot, function);
		}
	} else {
		snprintf(text[0], 64, "%u", port);
		memcpy(text[1], text[0], 64);
	}
	return !strcmp(number, text[0]) || !strcmp(number, text[1]);
}

void counted_interfaces_match(struct counted_interfaces *c, uint32_t port, const char *device)
{
	for (size_t i = 0; i < c->count; i++) {
		struct counted_interface *one = &c->list[i];

		if (!one->kind || strcmp(one->kind, DPDK) || one->port != COUNTED_NO_PORT ||
			!is_named(port_number(one->name), port, device))
			continue;
		one->port = port;
		return;
	}
	c->named++;
}

size_t counted_interfaces_outside(const struct counted_interfaces *c, char text[160])
{
	size_t n = c->more;

	for (size_t i = 0; i < c->count; i++)
		n += c->list[i].port == COUNTED_NO_PORT;
	text[0] = 0;
	if (n)
		snprintf(text, 160,
			"a recording lacks the packets of %zu interface%s without a port%s", n,
			n == 1 ? "" : "s",
			c->named ? ", unless VPP's configuration gives these names to ports" : "");
	return n;
}

void counted_interfaces_free(struct counted_interfaces *c)
{
	free(c);
}

static void put_rate(struct sheet *t, unsigned column, double pps)
{
	char text[FORMAT_LEN];

	if (!isnan(pps))
		sheet_put(t, column, "%s", format_si(text, pps));
}

int counted_interfaces_print(const struct counted_interfaces *c, FILE *f)
{
	struct sheet t = {.heads = {"port", "VPP's name", "driver", "rx pkt/s", "tx pkt/s"},
		.columns = 5,
		.numbers = true,
		.left = 1 << 1 | 1 << 2,
		.cut = 1 << 1,
		.dense = true};
	char outside[160];
	int ret = 0;

	if (!c)
		return 0;
	if (*c->counted.why) {
		text_wrapf(f, 4, "  VPP's interfaces are not known: %s.", c->counted.why);
		return 0;
	}
	for (size_t i = 0; i < c->count && !ret; i++) {
		const struct counted_interface *one = &c->list[i];

		ret = sheet_row(&t);
		if (ret)
			break;
		if (one->port != COUNTED_NO_PORT)
			sheet_put(&t, 0, "%u", one->port);
		sheet_put(&t, 1, "%s", one->name);
		sheet_put(&t, 2, "%s", one->kind ? one->kind : "unknown");
		put_rate(&t, 3, one->rx_pps);
		put_rate(&t, 4, one->tx_pps);
	}
	ret = sheet_end(&t, ret, f);
	if (!ret && counted_interfaces_outside(c, outside))
		text_wrapf(f, 4, "  %s", outside);
	return ret;
}

json_t *counted_interfaces_json(const struct counted_interfaces *c)
{
	json_t *j, *list;

	if (!c)
		return json_null();
	j = json_object();
	list = json_array();
	for (size_t i = 0; !*c->counted.why && i < c->count; i++) {
		const struct counted_interface *one = &c->list[i];
		json_t *x = json_object();

		json_put(x, "name", json_text(one->name));
		json_put(x, "driver", json_text(one->kind));
		json_put(x, "port",
			one->port == COUNTED_NO_PORT ? json_null() : json_count(one->port));
		json_put(x, "rx_pps", json_number(one->rx_pps));
		json_put(x, "tx_pps", json_number(one->tx_pps));
		json_array_append_new(list, x);
	}
	json_put(j, "source", json_text(c->counted.source->name));
	json_put(j, "error", json_text(*c->counted.why ? c->counted.why : NULL));
	json_put(j, "interfaces", list);
	return j;
}
