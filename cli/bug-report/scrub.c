/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "scrub.h"

/* Two colons are a time of day, or the address of a PCI device. */
#define H         "[0-9a-fA-F]"
#define IPV4      "[0-9]{1,3}(\\.[0-9]{1,3}){3}"
#define IPV6      "(" H "{1,4}:){3,7}" H "{1,4}|(" H "{1,4}:)*" H "{0,4}::(" H "{1,4}(:" H "{1,4})*)?"
#define ETHERNET  H H "([:-]" H H "){5}"
#define IN_MEMORY "0x" H "{6,}"

#define BEHIND_PATH "] \t'\",;:()[<>=" /* ']' first, for a set of regex(7) */
#define USER        "[^" BEHIND_PATH "]*/home/[^" BEHIND_PATH "/]+"

int scrub_init(struct scrub *s)
{
	int users, addresses;

	s->homes = json_object();
	s->names = json_object();
	users = regcomp(&s->users, USER, REG_EXTENDED);
	addresses = regcomp(&s->addresses, IPV4 "|" IPV6 "|" ETHERNET "|" IN_MEMORY, REG_EXTENDED);
	return users || addresses ? -ENOMEM : 0;
}

void scrub_free(struct scrub *s)
{
	regfree(&s->users);
	regfree(&s->addresses);
	json_decref(s->homes);
	json_decref(s->names);
}

static void add(json_t *names, const char *name, const char *other)
{
	json_t *text = json_text(name); /* as a name that is not UTF-8 stands in a report */
	const char *key = json_string_value(text);

	if (key && *key && !json_object_get(names, key))
		json_object_set_new(names, key, json_text(other));
	json_decref(text);
}

void scrub_name(struct scrub *s, const char *name, const char *other)
{
	char *line = name ? strdup(name) : NULL;

	add(s->names, name, other);
	if (line)
		add(s->names, text_one_line(line), other); /* as messages have it */
	free(line);
}

void scrub_home(struct scrub *s, const char *folder)
{
	char *name = folder ? strdup(folder) : NULL, *path = name ? realpath(name, NULL) : NULL;
	size_t len = name ? strlen(name) : 0;

	for (; len && name[len - 1] == '/'; len--)
		name[len - 1] = '\0';
	/* A service may have /, which is in all paths, or /home, with the names of users below. */
	if (len && strcmp(name, "/home"))
		add(s->homes, name, "HOME");
	if (len && path && path[1] && strcmp(path, "/home"))
		add(s->homes, path, "HOME");
	free(path);
	free(name);
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static bool in_component(char c)
{
	return c && c != '/' && !strchr(BEHIND_PATH, c);
}

/* The longest name that stands at p, behind the character before. */
static const char *name_at(
	const struct scrub *s, const json_t *names, const char *p, char before, const char **other)
{
	bool (*in_name)(char c) = names == s->homes ? in_component : in_word;
	const char *name, *found = NULL;
	json_t *value;

	json_object_foreach((json_t *)names, name, value)
	{
		size_t n = strlen(name);

		if (strncmp(p, name, n) || (in_name(before) && in_name(*name)) ||
			(in_name(p[n]) && in_name(name[n - 1])) || (found && strlen(found) >= n))
			continue;
		found = name;
		*other = json_string_value(value);
	}
	return found;
}

static void write_known(const struct scrub *s, const json_t *names, const char *text, FILE *f)
{
	char before = ' ';

	while (*text) {
		const char *other = NULL, *name = name_at(s, names, text, before, &other);
		size_t n = name ? strlen(name) : 1;

		fprintf(f, "%.*s", (int)(other ? strlen(other) : n), other ? other : text);
		before = text[n - 1];
		text += n;
	}
}

static void write_homes(const struct scrub *s, const char *text, FILE *f)
{
	write_known(s, s->homes, text, f);
}

static void write_names(const struct scrub *s, const char *text, FILE *f)
{
	write_known(s, s->names, text, f);
}

static void write_matches(const regex_t *found, const char *other, const char *text, FILE *f)
{
	regmatch_t at;

	while (*text && !regexec(found, text, 1, &at, 0)) {
		fprintf(f, "%.*s%s", (int)at.rm_so, text, other);
		text += at.rm_eo;
	}
	fputs(text, f);
}

static void write_users(const struct scrub *s, const char *text, FILE *f)
{
	write_matches(&s->users, "HOME", text, f);
}

static void write_addresses(const struct scrub *s, const char *text, FILE *f)
{
	write_matches(&s->addresses, "ADDRESS", text, f);
}

typedef void write_fn(const struct scrub *s, const char *text, FILE *f);

static char *written(const struct scrub *s, const char *text, write_fn *write)
{
	char *out = NULL;
	size_t len;
	FILE *f = text ? open_memstream(&out, &len) : NULL;

	if (!f)
		return NULL;
	write(s, text, f);
	fclose(f);
	return out;
}

json_t *scrub_text(const struct scrub *s, const char *text)
{
	/* Homes first: an application may be called home. */
	static write_fn *const passes[] = {write_homes, write_users, write_names, write_addresses};
	char *all = text ? strdup(text) : NULL;
	json_t *j;

	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
		char *next = written(s, all, passes[i]);

		free(all);
		all = next;
	}
	j = json_text(all);
	free(all);
	return j;
}
