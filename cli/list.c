/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/attach_app.h"
#include "commands.h"
#include "common/alias.h"
#include "common/now.h"
#include "counted/interfaces.h"
#include "show/sheet.h"
#include "target/hidden_vhost.h"
#include "target/interfaces.h"
#include "base/json.h"
#include "measure/rates.h"
#include "packet/filter.h"
#include "target/probe_path.h"
#include "base/util.h"
#include "target/which_app.h"

enum { OPT_JSON = 1, OPT_NAMES };

enum form { FORM_TEXT, FORM_JSON, FORM_NAMES };

static const struct option_def options[] = {
	{OPTION_SET(OPT_JSON), OPTION_FLAG, 0, "json", NULL, NULL, 0, 0, "Print JSON"},
	{OPTION_SET(OPT_NAMES), OPTION_FLAG, 0, "names", NULL, NULL, 0, 0,
		"Print the values of -i, one a line: APP and APP:PORT of applications with the "
		"probe"},
};

#define NAMES_MAX 64
#define RATE_NS   (NS_PER_S / 4) /* between two readings of the counters of VPP's interfaces */

struct list_options {
	enum form form;
	const char *names[NAMES_MAX]; /* names of the applications to list; none: all */
	int named[NAMES_MAX];         /* index of the name's application, or -errno */
	bool found[NAMES_MAX];
	size_t name_count;
};

static int set(void *ctx, int id, const struct option_value *v)
{
	((struct list_options *)ctx)->form = id == OPT_JSON ? FORM_JSON : FORM_NAMES;
	return 0;
}

static int operand(void *ctx, const char *text)
{
	struct list_options *c = ctx;

	if (c->name_count == NAMES_MAX)
		return message_fail(-EINVAL,
			"list: %s: more than %d applications; name fewer, or none for all", text,
			NAMES_MAX);
	c->names[c->name_count++] = text;
	return 0;
}

/* The name of a primary process means its secondaries, too. */
static bool wanted(struct list_options *c, const struct ringtap_apps *apps, size_t app)
{
	size_t primary = ringtap_apps_primary(apps, app);
	bool named = false;

	for (size_t i = 0; i < c->name_count; i++) {
		if (c->named[i] != (int)app && c->named[i] != (int)primary)
			continue;
		c->found[i] = true;
		named = true;
	}
	return named || !c->name_count;
}

static void find_named(struct list_options *c, const struct ringtap_apps *apps)
{
	for (size_t i = 0; i < c->name_count; i++)
		c->named[i] = target_app(apps, c->names[i], strlen(c->names[i]), NULL);
}

/* Names that no application has. Returns whether there are any. */
static bool print_unknown(const struct list_options *c, const struct ringtap_apps *apps)
{
	struct target_candidates others;
	bool any = false;

	for (size_t i = 0; i < c->name_count; i++) {
		if (c->found[i])
			continue;
		(void)target_app(apps, c->names[i], strlen(c->names[i]), &others);
		print_no_app("list", apps, c->names[i], c->named[i], &others);
		any = true;
	}
	return any;
}

/* Open vSwitch's name and, if it differs, ethdev's. */
static const char *port_name(char buf[2 * RINGTAP_NAME_LEN + 4], const struct ringtap_port_info *p)
{
	bool both = strcmp(p->name, p->device);

	snprintf(buf, 2 * RINGTAP_NAME_LEN + 4, both ? "%s (%s)" : "%s", p->name, p->device);
	return buf;
}

static const char *type_name(uint16_t linktype)
{
	const char *name = pcap_datalink_val_to_name(filter_dlt(linktype));

	return name ? name : "unknown";
}

/* Whether a port has packets of another type than Ethernet. */
static bool has_types(const struct app_view *v)
{
	for (size_t i = 0; i < v->port_count; i++)
		if (ringtap_list_port(v->list, i)->linktype > RINGTAP_LINKTYPE_ETHERNET)
			return true;
	return false;
}

static void add_port(struct sheet *t, const struct ringtap_port_info *p)
{
	char mac[FORMAT_LEN], speed[FORMAT_LEN] = "-", name[2 * RINGTAP_NAME_LEN + 4];

	if (sheet_row(t))
		return;
	if (p->link_mbps)
		format_si(speed, p->link_mbps * 1e6);
	sheet_put(t, 0, "%u", p->port_id);
	sheet_put(t, 1, "%s", port_name(name, p));
	sheet_put(t, 2, "%s", p->driver);
	sheet_put(t, 3, "%s", format_mac(mac, p->mac));
	sheet_put(t, 4, "%s", speed);
	sheet_put(t, 5, "%u", p->mtu);
	sheet_put(t, 6, "%u/%u", p->rx_queues, p->tx_queues);
	sheet_put(t, 7, "%s", p->link_up ? "up" : "down");
	if (t->columns > 8)
		sheet_put(t, 8, "%s", type_name(p->linktype));
}

/* Here and, in another PID namespace, there. */
static const char *pid_text(char buf[48], const struct ringtap_app_info *info)
{
	bool same = !info->host_pid || info->host_pid == info->pid;

	snprintf(buf, 48, same ? "%u" : "%u (%u in its container)",
		same ? info->pid : info->host_pid, info->pid);
	return buf;
}

static const char *secondary_text(const struct app_view *v)
{
	return v->primary ? ", secondary process" : "";
}

/* A probe has its commit behind the version. */
static bool is_this_version(const char *probe)
{
	size_t len = strlen(ringtap_version());

	return !strncmp(probe, ringtap_version(), len) && (!probe[len] || probe[len] == '+');
}

/* NULL: it is not VPP. */
static struct counted_interfaces *own_interfaces(const struct app_view *v)
{
	static uint64_t left_ns = COUNTED_INTERFACES_NS;
	struct counted_interfaces *c;

	if (v->error || v->primary)
		return NULL;
	c = counted_interfaces_begin(
		v->info.program, (pid_t)v->info.host_pid, (pid_t)v->info.pid, &left_ns);
	if (!c)
		return NULL;
	if (c->read_ns && left_ns > RATE_NS) {
		rt_sleep_ns(RATE_NS);
		left_ns -= RATE_NS;
		counted_interfaces_end(c, &left_ns);
	}
	for (size_t i = 0; i < v->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(v->list, i);

		counted_interfaces_match(c, p->port_id, p->device);
	}
	return c;
}

/* Devices that are not ports; NULL: none are known. */
static const char *hidden(const struct app_view *v)
{
	return v->error || v->primary ? NULL : hidden_vhost(v->info.host_pid, v->list);
}

static void print_own_interfaces(const struct app_view *v)
{
	struct counted_interfaces *c = own_interfaces(v);

	(void)counted_interfaces_print(c, stdout);
	counted_interfaces_free(c);
}

static void print_app(const struct app_view *v)
{
	struct sheet t = {.heads = {"port", "name", "driver", "mac", "bit/s", "mtu", "rx/txq",
				  "link", "type"},
		.columns = has_types(v) ? 9 : 8,
		.numbers = true,
		.left = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8,
		.cut = 1 << 1 | 1 << 2,
		.dense = true};
	const char *why = hidden(v);
	char pid[48];

	if (v->error) {
		printf("%s  (%s)%s\n", v->name, v->dir, secondary_text(v));
		/* -ENOENT: it has no telemetry either. */
		if (v->error == -EPROTONOSUPPORT || v->error == -ENOENT)
			printf("  without the probe; 'ringtap attach %s' loads it\n", v->name);
		else
			printf("  cannot attach: %s\n", v->why);
		return;
	}
	text_wrapf(stdout, 4, "%s  (%s, pid %s, %s, probe %s%s)%s", v->name, v->info.program,
		pid_text(pid, &v->info), v->info.dpdk, v->info.probe,
		is_this_version(v->info.probe) ? "" : ", which is not this version",
		secondary_text(v));
	for (size_t i = 0; i < v->port_count; i++)
		add_port(&t, ringtap_list_port(v->list, i));
	sheet_end(&t, 0, stdout);
	print_own_interfaces(v);
	if (why)
		text_wrapf(stdout, 4, "  %s", why);
	for (size_t i = 0; i < v->session_count; i++) {
		const struct ringtap_session_info *s = ringtap_list_session(v->list, i);
		char size[FORMAT_LEN];

		text_wrapf(stdout, 4, "  session %u: %s, pid %u, %u rings, %s, %u taps", s->id,
			s->reader, s->reader_pid, s->rings,
			format_bytes(size, (double)s->buffer_size), s->taps);
	}
}

static void print_names(const struct app_view *v)
{
	if (v->error)
		return;
	puts(v->name);
	for (size_t i = 0; i < v->port_count; i++)
		printf("%s:%s\n", v->name, ringtap_list_port(v->list, i)->name);
}

static json_t *port_json(const struct ringtap_port_info *p, size_t app)
{
	char mac[FORMAT_LEN], alias[RT_ALIAS_LEN];
	json_t *j = json_port(p->port_id, p->name);

	json_object_set_new(j, "device", json_text(p->device));
	json_object_set_new(j, "alias", json_text(rt_alias_make(alias, app, p->port_id)));
	json_object_set_new(j, "driver", json_text(p->driver));
	json_object_set_new(j, "mac", json_text(format_mac(mac, p->mac)));
	json_object_set_new(j, "link_mbps", p->link_mbps ? json_count(p->link_mbps) : json_null());
	json_object_set_new(j, "link_up", json_boolean(p->link_up));
	json_object_set_new(j, "mtu", json_count(p->mtu));
	json_object_set_new(j, "linktype", json_count(p->linktype));
	json_object_set_new(j, "rx_queues", json_count(p->rx_queues));
	json_object_set_new(j, "tx_queues", json_count(p->tx_queues));
	return j;
}

static json_t *session_json(const struct ringtap_session_info *s)
{
	json_t *j = json_object();

	json_object_set_new(j, "id", json_count(s->id));
	json_object_set_new(j, "reader", json_text(s->reader));
	json_object_set_new(j, "reader_pid", json_count(s->reader_pid));
	json_object_set_new(j, "rings", json_count(s->rings));
	json_object_set_new(j, "buffer_bytes", json_count(s->buffer_size));
	json_object_set_new(j, "taps", json_count(s->taps));
	json_object_set_new(j, "start", json_time(s->start_ns));
	return j;
}

static json_t *app_json(const struct app_view *v, size_t number)
{
	const struct ringtap_app_info none = {0}, *info = v->error ? &none : &v->info;
	json_t *j = json_application(v->name, info->pid, info->program);
	json_t *ports = json_array();
	json_t *sessions = json_array();
	struct counted_interfaces *own = own_interfaces(v);
	char alias[RT_ALIAS_LEN];

	json_object_set_new(
		j, "host_pid", info->host_pid ? json_count(info->host_pid) : json_null());
	json_object_set_new(
		j, "alias", json_text(rt_alias_make(alias, number, RT_ALIAS_ALL_PORTS)));
	json_object_set_new(j, "dir", json_text(v->dir));
	json_object_set_new(j, "primary", v->primary ? json_text(v->primary) : json_null());
	json_object_set_new(j, "dpdk", json_text(v->error ? NULL : info->dpdk));
	json_object_set_new(j, "probe", json_text(v->error ? NULL : info->probe));
	json_object_set_new(j, "error", v->error ? json_text(v->why) : json_null());
	json_object_set_new(j, "stopped", json_boolean(v->error == -EHOSTDOWN));
	json_object_set_new(j, "load_probe",
		v->error == -EPROTONOSUPPORT ? json_sprintf("-d %s", probe_path()) : json_null());
	for (size_t i = 0; i < v->port_count; i++)
		json_array_append_new(ports, port_json(ringtap_list_port(v->list, i), number));
	for (size_t i = 0; i < v->session_count; i++)
		json_array_append_new(sessions, session_json(ringtap_list_session(v->list, i)));
	json_object_set_new(j, "ports", ports);
	json_object_set_new(j, "sessions", sessions);
	json_object_set_new(j, "own_interfaces", counted_interfaces_json(own));
	json_object_set_new(j, "hidden", json_text(hidden(v)));
	counted_interfaces_free(own);
	return j;
}

struct others {
	struct list_options *c;
	json_t *processes;
};

static bool is_named(struct list_options *c, uint32_t pid, const char *program)
{
	char number[16];
	bool named = false;

	snprintf(number, sizeof(number), "%u", pid);
	for (size_t i = 0; i < c->name_count; i++) {
		if (c->named[i] == -ENOTUNIQ ||
			(strcmp(c->names[i], program) && strcmp(c->names[i], number)))
			continue;
		c->found[i] = true;
		named = true;
	}
	return named || !c->name_count;
}

/* The process of another user, into which this one cannot load the probe. False: it can. */
static bool print_foreign(uint32_t pid)
{
	const struct passwd *owner;
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (!geteuid() || stat(path, &st) || st.st_uid == geteuid())
		return false;
	owner = getpwuid(st.st_uid);
	printf("  runs as %s; run ringtap as that user or as root\n",
		owner ? owner->pw_name : "another user");
	return true;
}

static void add_process(uint32_t pid, const char *program, void *arg)
{
	struct others *o = arg;
	char name[64];

	if (!is_named(o->c, pid, program))
		return;
	json_array_append_new(o->processes,
		json_pack("{s:I,s:o}", "pid", (json_int_t)pid, "program", json_text(program)));
	if (o->c->form != FORM_TEXT)
		return;
	printf("%s  (pid %u)\n", printable(name, sizeof(name), program), pid);
	if (!print_foreign(pid))
		printf("  no probe, no telemetry; 'ringtap attach %u' loads the probe\n", pid);
}

static int print_json(json_t *applications, json_t *processes, json_t *skipped)
{
	json_t *j = json_document("list", json_incref(applications));

	json_object_set(j, "processes", processes);
	json_object_set(j, "skipped", skipped);
	return json_print(j, stdout);
}

static int list(struct list_options *c)
{
	struct others o = {c, json_array()};
	json_t *array = json_array(), *skipped = json_array();
	struct ringtap_apps *apps;
	uint64_t foreign_ns = 0;
	int ret = ringtap_apps_find(&apps);

	if (ret) {
		message_print("list: looking for applications: %s", strerror(-ret));
		json_decref(o.processes);
		json_decref(array);
		json_decref(skipped);
		return STATUS_FAILED;
	}
	find_named(c, apps);
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		struct app_view v;

		if (!wanted(c, apps, i))
			continue;
		app_view_get(&v, apps, i, 0, &foreign_ns);
		if (c->form == FORM_JSON)
			json_array_append_new(array, app_json(&v, i));
		else if (c->form == FORM_NAMES)
			print_names(&v);
		else
			print_app(&v);
		app_view_free(&v);
	}
	for (size_t i = 0; i < ringtap_apps_notes(apps); i++) {
		message_print("list: skipped %s", ringtap_apps_note(apps, i));
		json_array_append_new(skipped, json_text(ringtap_apps_note(apps, i)));
	}
	attach_each_unlisted(apps, add_process, &o);
	if (c->form == FORM_TEXT && !ringtap_apps_count(apps) && !json_array_size(o.processes))
		message_print(
			"list: no running DPDK application found; run ringtap as its user or as root");
	if (c->form == FORM_JSON)
		ret = print_json(array, o.processes, skipped);
	json_decref(o.processes);
	json_decref(array);
	json_decref(skipped);
	ret = output_end("list", ret);
	if (ret == STATUS_OK && print_unknown(c, apps))
		ret = STATUS_FAILED;
	ringtap_apps_free(apps);
	return ret;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct list_options c = {.form = FORM_TEXT};
	int ret = options_parse(self, argc, argv, &c);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	return list(&c);
}

const struct command cmd_list = {
	.name = "list",
	.summary = "list running DPDK applications, their ports and captures",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP]...",
	.listed = LIST_APPS,
	.operand = operand,
	.set = set,
	.run = run,
};
