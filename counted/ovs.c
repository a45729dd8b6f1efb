/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open vSwitch's coverage counters of dropped packets, the counters of its ports, and those of its
 * polling threads, which every ovs-vswitchd reports on its control socket, see ovs-appctl(8),
 * ovs-dpctl(8) and ovs-vswitchd(8). Each thread counts the first by itself, and adds them to those
 * that are reported once a second (COVERAGE_CLEAR_INTERVAL); those of threads are always right.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/now.h"
#include "common/peer_json.h"
#include "counted.h"

#define PATH_LEN 108
#define COVERAGE "{\"id\":0,\"method\":\"coverage/show\",\"params\":[]}"
#define PORTS    "{\"id\":0,\"method\":\"dpctl/show\",\"params\":[\"-s\"]}"
#define THREADS  "{\"id\":0,\"method\":\"dpif-netdev/pmd-perf-show\",\"params\":[\"-nh\"]}"

static const struct {
	const char *name, *meaning;
} meanings[] = {
	{"datapath_drop_meter", "by a meter"},
	{"datapath_drop_upcall_error", "no flow could be set up"},
	{"datapath_drop_lock_error", "the switch was being reconfigured"},
	{"datapath_drop_rx_invalid_packet", "shorter than an Ethernet header"},
	{"datapath_drop_userspace_action_error", "could not be passed to the slow path"},
	{"datapath_drop_recirc_error", "recirculated too often"},
	{"datapath_drop_invalid_port", "the output port is gone"},
	{"datapath_drop_invalid_bond", "the output bond is gone"},
	{"datapath_drop_invalid_tnl_port", "the tunnel's port is gone"},
	{"datapath_drop_tunnel_push_error", "a tunnel's header could not be added"},
	{"datapath_drop_tunnel_pop_error", "a tunnel's header could not be removed"},
	{"datapath_drop_sample_error", "sampling failed"},
	{"datapath_drop_nsh_decap_error", "an NSH header could not be removed"},
	{"drop_action_of_pipeline", "by a rule, or no rule has an output"},
	{"drop_action_bridge_not_found", "the bridge is gone"},
	{"drop_action_recursion_too_deep", "rules call tables too deeply"},
	{"drop_action_too_many_resubmit", "rules call too many tables"},
	{"drop_action_stack_too_deep", "rules push too much"},
	{"drop_action_no_recirculation_context", "recirculated without its state"},
	{"drop_action_recirculation_conflict", "recirculated with another state"},
	{"drop_action_too_many_mpls_labels", "too many MPLS labels"},
	{"drop_action_invalid_tunnel_metadata", "invalid tunnel metadata"},
	{"drop_action_unsupported_packet_type", "packet type not supported"},
	{"drop_action_congestion", "congestion mark that the tunnel's payload cannot have (ECN)"},
	{"drop_action_forwarding_disabled", "the port does not forward (STP, bond)"},
};

/* NULL: not known. */
static const char *meaning_of(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strlen(meanings[i].name) == len && !memcmp(meanings[i].name, name, len))
			return meanings[i].meaning;
	return NULL;
}

/* "name  0.0/sec  0.000/sec  0.0000/sec   total: 12" */
static void take_line(struct counted *c, const char *line, size_t len)
{
	static const char key[] = "total: ";
	const char *total = memmem(line, len, key, sizeof(key) - 1);
	unsigned long long value;
	char *end;

	if (!total || (strncmp(line, "datapath_drop_", 14) && strncmp(line, "drop_action_", 12)))
		return;
	total += sizeof(key) - 1;
	errno = 0;
	value = strtoull(total, &end, 10);
	if (isdigit((unsigned char)*total) && end == line + len && !errno)
		counted_put(
			c, line, strcspn(line, " "), meaning_of(line, strcspn(line, " ")), value);
}

void counted_take_coverage(struct counted *c, const char *text)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		take_line(c, text, strcspn(text, "\n"));
}

/* "  port 3: vm0 (dpdkvhostuserclient: …)". False: not a port of DPDK. */
static bool take_port(const char *line, size_t len, char name[COUNTED_NAME_LEN], bool *guest)
{
	const char *begin = memmem(line, len, ": ", 2), *type = memmem(line, len, " (dpdk", 6);
	size_t n;

	if (!begin || !type || type < begin + 2)
		return false;
	n = (size_t)(type - begin - 2);
	if (!n || n > COUNTED_NAME_LEN - sizeof(" rx_dropped"))
		return false;
	memcpy(name, begin + 2, n);
	name[n] = '\0';
	*guest = (size_t)(line + len - type) > 11 && !memcmp(type, " (dpdkvhost", 11);
	return true;
}

/* "    RX packets:8 errors:? dropped:6 overruns:? frame:?"; a question mark: not known. */
static void take_dropped(struct counted *c, const char *port, bool guest, const char *line)
{
	static const char key[] = "dropped:";
	static const char *const meanings_of[2][2] = {
		{"received: by its policer, or no mbuf",
			"to be sent: refused, too long, or by its QoS"},
		{"received: by its policer", "to be sent: refused, too long, or by its QoS"}};
	const bool sent = line[4] == 'T';
	size_t len = strcspn(line, "\n");
	const char *value = memmem(line, len, key, sizeof(key) - 1);
	struct counted_value *v;
	char name[COUNTED_NAME_LEN + 16];

	if (!value || !isdigit((unsigned char)value[sizeof(key) - 1]))
		return;
	snprintf(name, sizeof(name), "%s %s", port, sent ? "tx_dropped" : "rx_dropped");
	/* Counters that are 0 leave the room to others. */
	if (value[sizeof(key) - 1] == '0' && !counted_get(c, name, strlen(name)))
		return;
	v = counted_put(c, name, strlen(name), meanings_of[guest][sent],
		strtoull(value + sizeof(key) - 1, NULL, 10));
	/* ringtap counts refusals of an ethdev by themselves. */
	if (!v)
		return;
	v->mixed = !guest;
	if (!c->more)
		v->begin = v->end;
}

void counted_take_ports(struct counted *c, const char *text)
{
	char port[COUNTED_NAME_LEN] = "";
	bool guest = false;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (!strncmp(text, "  port ", 7) &&
			!take_port(text, strcspn(text, "\n"), port, &guest))
			port[0] = '\0';
		else if (*port && (!strncmp(text, "    RX packets:", 15) ||
					  !strncmp(text, "    TX packets:", 15)))
			take_dropped(c, port, guest, text);
	}
}

/* "pmd thread numa_id 0 core_id 3:" and "main thread:". NULL: there is no room, or no name. */
static struct counted_thread *take_thread(struct counted_threads *t, const char *line, size_t len)
{
	size_t i;

	if (!counted_is_name(line, len))
		return NULL;
	for (i = 0; i < t->count; i++)
		if (strlen(t->list[i].name) == len && !memcmp(t->list[i].name, line, len))
			return &t->list[i];
	if (t->count == COUNTED_THREADS)
		return NULL;
	t->list[t->count] = (struct counted_thread){0};
	memcpy(t->list[t->count].name, line, len);
	return &t->list[t->count++];
}

/* "  Rx packets:   12  (1 Kpps, 250 cycles/pkt)" */
static void take_of_thread(struct counted_thread *t, const char *line, bool begun)
{
	static const char *const keys[COUNTED_OF_THREAD] = {[COUNTED_RECEIVED] = "  Rx packets: ",
		[COUNTED_SENT] = "  Tx packets: ",
		[COUNTED_SLOW] = "  - Upcalls: ",
		[COUNTED_LOST] = "  - Lost upcalls: "};

	for (unsigned i = 0; i < COUNTED_OF_THREAD; i++) {
		const char *value = line + strlen(keys[i]);
		unsigned long long n;

		if (strncmp(line, keys[i], strlen(keys[i])))
			continue;
		value += strspn(value, " ");
		errno = 0;
		n = isdigit((unsigned char)*value) ? strtoull(value, NULL, 10) : 0;
		if (!isdigit((unsigned char)*value) || errno)
			continue;
		t->end[i] = n;
		if (!begun)
			t->begin[i] = n;
	}
}

void counted_take_threads(struct counted *c, const char *text)
{
	struct counted_thread *t = NULL;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t len = strcspn(text, "\n");

		if (*text != ' ' && len > 1 && text[len - 1] == ':' &&
			memmem(text, len, "thread", 6))
			t = take_thread(c->threads, text, len - 1);
		else if (t)
			take_of_thread(t, text, c->threads->begun);
	}
	c->threads->begun = true;
}

/* The path of the control socket, in the switch's root folder. 0, or -errno after writing why. */
static int socket_path(struct counted *c, char path[PATH_LEN])
{
	static const char option[] = "--unixctl";
	char args[RT_PEER_ARGS_MAX];
	size_t len = rt_peer_args(c->pid, args), at;
	const char *value = NULL, *name = strrchr(args, '/');
	char folder[PATH_LEN];
	bool fits = rt_peer_env(c->pid, "OVS_RUNDIR", "/var/run/openvswitch", folder, PATH_LEN);
	int n;

	for (at = strlen(args) + 1; at < len; at += strlen(args + at) + 1) {
		const char *arg = args + at;

		if (!strncmp(arg, option, sizeof(option) - 1) && arg[sizeof(option) - 1] == '=')
			value = arg + sizeof(option);
		else if (!strcmp(arg, option) && at + sizeof(option) < len)
			value = arg + sizeof(option);
	}
	if (!len || (value && !strcmp(value, "none"))) {
		snprintf(c->why, sizeof(c->why), "%s",
			len ? "it has no control socket (--unixctl=none)"
			    : "its command line cannot be read");
		return -ENOENT;
	}
	if (value && *value == '/')
		n = snprintf(path, PATH_LEN, "%s", value);
	else if (value)
		n = snprintf(path, PATH_LEN, "%s/%s", folder, value);
	else
		n = snprintf(path, PATH_LEN, "%s/%s.%d.ctl", folder, name ? name + 1 : args,
			(int)c->own_pid);
	if ((fits || (value && *value == '/')) && n < PATH_LEN)
		return 0;
	snprintf(c->why, sizeof(c->why), "the path of its control socket is too long");
	return -ENAMETOOLONG;
}

static int ask(struct counted *c, const char *path, const char *question, int within_ms,
	void (*take)(struct counted *c, const char *text))
{
	const char *text;
	json_t *answer;
	uid_t uid;
	int ret = counted_uid(c, &uid);

	if (!ret)
		ret = rt_peer_json(c->pid, uid, path, question, within_ms, &answer);
	if (ret)
		return counted_failed(c, path, ret, within_ms);
	text = json_string_value(json_object_get(answer, "result"));
	if (text)
		take(c, text);
	json_decref(answer);
	return text ? 0 : counted_failed(c, path, -EPROTO, within_ms);
}

/* In the time that is left until then. The rest is known without these answers. */
static bool ask_more(struct counted *c, const char *path, const char *question, uint64_t until_ns,
	void (*take)(struct counted *c, const char *text))
{
	const uint64_t now = rt_now_ns(CLOCK_MONOTONIC);
	const int left_ms = now < until_ns ? (int)((until_ns - now) / 1000000) : 0;
	const bool answered = left_ms && !ask(c, path, question, left_ms, take);

	c->why[0] = '\0';
	return answered;
}

/* Ports take longer than the others. */
static int read_counters(struct counted *c, int within_ms)
{
	const uint64_t until_ns =
		rt_now_ns(CLOCK_MONOTONIC) + (uint64_t)(within_ms > 0 ? within_ms : 0) * 1000000;
	char path[PATH_LEN];
	int ret = socket_path(c, path);

	if (!ret)
		ret = ask(c, path, COVERAGE, within_ms, counted_take_coverage);
	if (ret)
		return ret;
	if (c->threads)
		(void)ask_more(c, path, THREADS, until_ns, counted_take_threads);
	c->more |= ask_more(c, path, PORTS, until_ns, counted_take_ports);
	return 0;
}

const struct counted_source counted_open_vswitch = {
	.name = "Open vSwitch",
	.program = "ovs-vswitchd",
	.late_ns = 1200000000,
	.note = "Its threads add to datapath_ and drop_ counters once a second: they may have "
		"packets of the second before the interval, and lack those of its last one. They "
		"are those of all ports, also of ports that ringtap does not see.",
	.read = read_counters,
	.has_threads = true,
};
