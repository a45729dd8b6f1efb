/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scrub.h"

/* Two colons are a time of day, or the address of a PCI device. */
#define H         "[0-9a-fA-F]"
#define IPV4      "[0-9]{1,3}(\\.[0-9]{1,3}){3}"
#define IPV6      "(" H "{1,4}:){3,7}" H "{1,4}|(" H "{1,4}:)*" H "{0,4}::(" H "{1,4}(:" H "{1,4})*)?"
#define ETHERNET  H H "([:-]" H H "){5}"
#define IN_MEMORY "0x" H "{6,}"

int scrub_init(struct scrub *s)
{
	s->names = json_object();
	return regcomp(&s->addresses, IPV4 "|" IPV6 "|" ETHERNET "|" IN_MEMORY, REG_EXTENDED)
		       ? -ENOMEM
		       : 0;
}

void scrub_free(struct scrub *s)
{
	regfree(&s->addresses);
	json_decref(s->names);
}

void scrub_name(struct scrub *s, const char *name, const char *other)
{
	if (name && *name && !json_object_get(s->names, name))
		json_object_set_new(s->names, name, json_text(other));
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* The longest name that stands at p, behind the character before. */
static const char *name_at(const struct scrub *s, const char *p, char before, const char **other)
{
	const char *name, *found = NULL;
	json_t *value;

	json_object_foreach(s->names, name, value)
	{
		size_t n = strlen(name);

		if (strncmp(p, name, n) || (in_word(before) && in_word(*name)) ||
			(in_word(p[n]) && in_word(name[n - 1])) || (found && strlen(found) >= n))
			continue;
		found = name;
		*other = json_string_value(value);
	}
	return found;
}

static void write_names(const struct scrub *s, const char *text, FILE *f)
{
	char before = ' ';

	while (*text) {
		const char *other = NULL, *name = name_at(s, text, before, &other);
		size_t n = name ? strlen(name) : 1;

		fprintf(f, "%.*s", (int)(other ? strlen(other) : n), other ? other : text);
		before = text[n - 1];
		text += n;
	}
}

static void write_addresses(const struct scrub *s, const char *text, FILE *f)
{
	regmatch_t at;

	while (*text && !regexec(&s->addresses, text, 1, &at, 0)) {
		fprintf(f, "%.*sADDRESS", (int)at.rm_so, text);
		text += at.rm_eo;
	}
	fputs(text, f);
}

static char *written(const struct scrub *s, const char *text,
	void (*write)(const struct scrub *s, const char *text, FILE *f))
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
	char *names = written(s, text, write_names);
	char *all = written(s, names, write_addresses);
	json_t *j = json_text(all);

	free(names);
	free(all);
	return j;
}
