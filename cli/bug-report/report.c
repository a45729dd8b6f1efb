/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses what may be published: keys that are not named here are left out, and texts are scrubbed.
 */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "report.h"
#include "scrub.h"

static const char *text_of(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

/* Copies the values of keys, NULL at the end. */
static json_t *chosen(const json_t *from, const char *const *keys)
{
	json_t *j = json_object();

	for (; *keys; keys++) {
		json_t *value = json_object_get(from, *keys);

		json_put(j, *keys, value ? json_incref(value) : json_null());
	}
	return j;
}

static void name_app(struct scrub *s, const json_t *app, size_t number)
{
	static const char *const names[] = {"name", "device"};
	json_t *port;
	char other[32];
	size_t i;

	snprintf(other, sizeof(other), "app%zu", number);
	scrub_name(s, text_of(app, "name"), other);
	json_array_foreach(json_object_get(app, "ports"), i, port)
	{
		snprintf(other, sizeof(other), "port%d",
			(int)json_integer_value(json_object_get(port, "index")));
		for (size_t k = 0; k < 2; k++)
			scrub_name(s, text_of(port, names[k]), other);
	}
}

static json_t *ports_json(const json_t *app)
{
	static const char *const keys[] = {
		"index", "driver", "link_up", "link_mbps", "mtu", "rx_queues", "tx_queues", NULL};
	json_t *ports = json_array(), *port;
	size_t i;

	json_array_foreach(json_object_get(app, "ports"), i, port)
		json_array_append_new(ports, chosen(port, keys));
	return ports;
}

static json_t *verdict_json(const struct scrub *s, const json_t *from)
{
	static const char *const keys[] = {"verdict", "grade", NULL};
	json_t *j = chosen(from, keys), *evidence = json_array(), *line;
	size_t i;

	json_put(j, "where", scrub_text(s, text_of(from, "where")));
	json_array_foreach(json_object_get(from, "evidence"), i, line)
		json_array_append_new(evidence, scrub_text(s, json_string_value(line)));
	json_put(j, "evidence", evidence);
	return j;
}

/* Verdicts of the same application in the document of the doctor. */
static json_t *verdicts_json(const struct scrub *s, const json_t *doctor, const char *name)
{
	json_t *verdicts = json_array(), *app, *verdict;
	size_t i, k;

	json_array_foreach(json_object_get(doctor, "applications"), i,
		app) if (name && text_of(app, "name") && !strcmp(name, text_of(app, "name")))
		json_array_foreach(json_object_get(app, "verdicts"), k, verdict)
			json_array_append_new(verdicts, verdict_json(s, verdict));
	return verdicts;
}

static json_t *app_json(
	const struct bug_report *r, const struct scrub *s, const json_t *app, size_t number)
{
	static const char *const keys[] = {"pid", "program", "dpdk", "probe", "stopped", NULL};
	json_t *j = json_object(), *facts = chosen(app, keys);

	json_put(j, "name", json_sprintf("app%zu", number));
	json_object_update(j, facts);
	json_decref(facts);
	json_put(j, "program", scrub_text(s, text_of(app, "program")));
	json_put(j, "secondary", json_boolean(text_of(app, "primary")));
	json_put(j, "error", scrub_text(s, text_of(app, "error")));
	json_put(j, "captures", json_count(json_array_size(json_object_get(app, "sessions"))));
	json_put(j, "ports", ports_json(app));
	json_put(j, "verdicts", verdicts_json(s, r->doctor, text_of(app, "name")));
	return j;
}

static json_t *lines_json(const struct scrub *s, const char *text)
{
	json_t *lines = json_array();

	while (text && *text) {
		size_t n = strcspn(text, "\n");
		char *line = strndup(text, n);

		json_array_append_new(lines, scrub_text(s, line));
		free(line);
		text += n + (text[n] == '\n');
	}
	return lines;
}

static json_t *programs_json(const struct scrub *s, const json_t *list)
{
	json_t *programs = json_array(), *process;
	size_t i;

	json_array_foreach(json_object_get(list, "processes"), i, process)
		json_array_append_new(programs, scrub_text(s, text_of(process, "program")));
	return programs;
}

static json_t *problems_json(const struct bug_report *r, const struct scrub *s)
{
	json_t *problems = json_array(), *text;
	size_t i;

	json_array_foreach(r->problems, i, text)
		json_array_append_new(problems, scrub_text(s, json_string_value(text)));
	return problems;
}

/* Whether an operand is the name of a program, which stays. */
static bool is_program(const json_t *list, const char *name)
{
	static const char *const arrays[] = {"applications", "processes"};
	json_t *process;
	size_t i;

	for (size_t k = 0; k < 2; k++)
		json_array_foreach(json_object_get(list, arrays[k]), i, process)
		{
			const char *program = text_of(process, "program");

			if (program && !strcmp(program, name))
				return true;
		}
	return false;
}

/* Names of applications that are not in the list: it may be missing, or not show them. */
static void name_unlisted(struct scrub *s, const struct bug_report *r)
{
	static const char folder[] = "/dpdk/"; /* has the runtime folders of applications */
	json_t *text;
	size_t i;

	for (const char *const *name = r->asked; *name; name++)
		if ((*name)[strspn(*name, "0123456789")] && !is_program(r->list, *name))
			scrub_name(s, *name, "APP");
	json_array_foreach(r->problems, i, text)
	{
		const char *p = json_string_value(text);

		while (p && (p = strstr(p, folder))) {
			char *name;

			p += strlen(folder);
			name = strndup(p, strcspn(p, " /'\",;:()"));
			scrub_name(s, name, "APP");
			free(name);
		}
	}
}

static void name_home(struct scrub *s, uid_t user)
{
	const struct passwd *entry = getpwuid(user);

	if (entry)
		scrub_home(s, entry->pw_dir);
}

/* The host, and homes of the user, of the one behind sudo, and of the owner of this program. */
static void name_host(struct scrub *s)
{
	const char *sudo = getenv("SUDO_UID");
	char host[256] = "";
	struct stat program;

	(void)gethostname(host, sizeof(host) - 1);
	scrub_name(s, host, "HOST");
	scrub_home(s, getenv("HOME"));
	name_home(s, getuid());
	if (sudo && *sudo)
		name_home(s, (uid_t)strtoul(sudo, NULL, 10));
	if (!stat("/proc/self/exe", &program))
		name_home(s, program.st_uid);
}

json_t *bug_report_json(const struct bug_report *r)
{
	json_t *apps = json_object_get(r->list, "applications"), *out = json_array(), *j, *app;
	struct scrub s;
	size_t i;

	if (scrub_init(&s)) {
		scrub_free(&s);
		json_decref(out);
		json_decref(r->system);
		return NULL;
	}
	json_array_foreach(apps, i, app) name_app(&s, app, i + 1);
	name_unlisted(&s, r);
	name_host(&s);
	json_array_foreach(apps, i, app) json_array_append_new(out, app_json(r, &s, app, i + 1));
	j = json_document("bug-report", out);
	json_put(j, "host", json_text(""));
	json_put(j, "versions", lines_json(&s, r->versions));
	json_put(j, "system", r->system);
	json_put(j, "other_programs", programs_json(&s, r->list));
	json_put(j, "problems", problems_json(r, &s));
	scrub_free(&s);
	return j;
}

/* ---- for people */

static void print_value(FILE *f, const char *name, const json_t *value, int indent);

static void print_members(FILE *f, const json_t *value, int indent)
{
	const char *key;
	json_t *member;
	size_t i;

	json_object_foreach((json_t *)value, key, member) print_value(f, key, member, indent);
	json_array_foreach(value, i, member) print_value(f, NULL, member, indent);
}

static void print_value(FILE *f, const char *name, const json_t *value, int indent)
{
	char *text = json_is_string(value) ? strdup(json_string_value(value))
					   : json_dumps(value, JSON_ENCODE_ANY);

	fprintf(f, "%*s%s%s", indent, "", name ? name : "-", name ? ":" : "");
	if (json_is_object(value) || (json_is_array(value) && json_array_size(value))) {
		fputc('\n', f);
		print_members(f, value, indent + 2);
	} else {
		fprintf(f, " %s\n",
			json_is_null(value)    ? "-"
			: json_is_array(value) ? "none"
			: text                 ? text_one_line(text)
					       : "");
	}
	free(text);
}

void bug_report_print(FILE *f, const json_t *document)
{
	static const char *const parts[] = {
		"time", "versions", "system", "applications", "other_programs", "problems"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		print_value(f, parts[i], json_object_get(document, parts[i]), 0);
}
