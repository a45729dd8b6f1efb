/* SPDX-License-Identifier: BSD-3-Clause */
/* USDT events of a file: notes of type 3 and owner stapsdt, of three addresses and three
 * texts (provider, event, arguments). */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

#define OWNER      "stapsdt"
#define PROVIDER   "ringtap"
#define SECTION    ".note.stapsdt"
#define NOTE_TYPE  3
#define EVENTS_MAX 1024
/* Limit of bytes of notes and names read from one file: sections may overlap, and may lie in holes
 * of the file. */
#define BYTES_MAX    (1u << 20)
#define SECTIONS_MAX 65536

/* A zero-terminated text, and *p behind it. NULL: it has no end. */
static const char *text_of(const char **p, const char *end)
{
	const char *text = *p, *zero = memchr(text, 0, (size_t)(end - text));

	if (!zero)
		return NULL;
	*p = zero + 1;
	return text;
}

/* Printable ASCII only: it goes to terminals. */
static void copy(char *to, size_t size, const char *text)
{
	size_t i = 0;

	for (; text[i] && i < size - 1; i++)
		to[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	to[i] = '\0';
}

static int add(struct trace_events *events, const char *name, const char *arguments)
{
	struct trace_event e = {.count = 1}, *list;

	copy(e.name, sizeof(e.name), name);
	copy(e.arguments, sizeof(e.arguments), arguments);
	for (size_t i = 0; i < events->count; i++) {
		if (strcmp(events->list[i].name, e.name) ||
			strcmp(events->list[i].arguments, e.arguments))
			continue;
		events->list[i].count++;
		return 0;
	}
	if (events->count == EVENTS_MAX)
		return -E2BIG;
	list = realloc(events->list, (events->count + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	events->list = list;
	list[events->count++] = e;
	return 0;
}

static int add_note(struct trace_events *events, const char *desc, size_t size, size_t address)
{
	const char *end = desc + size, *p = desc + 3 * address;
	const char *provider, *name, *arguments;

	if (size < 3 * address)
		return -ENOEXEC;
	provider = text_of(&p, end);
	name = provider ? text_of(&p, end) : NULL;
	arguments = name ? text_of(&p, end) : NULL;
	if (!arguments)
		return -ENOEXEC;
	return strcmp(provider, PROVIDER) ? 0 : add(events, name, arguments);
}

static int add_section(struct trace_events *events, Elf_Scn *section, size_t address)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t at = 0, next, name, desc;
	GElf_Nhdr note;
	int ret = 0;

	if (!data || !data->d_buf)
		return -ENOEXEC;
	/* libelf checks that the note lies within the section. */
	while (!ret && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof(OWNER) &&
			!memcmp(bytes + name, OWNER, sizeof(OWNER)))
			ret = add_note(events, bytes + desc, note.n_descsz, address);
		at = next;
	}
	return ret;
}

/* Subtracts the section's size from the limit. */
static bool afford(size_t *budget, const GElf_Shdr *header)
{
	/* A compressed section's size is not that of its contents. */
	if (header->sh_flags & SHF_COMPRESSED || header->sh_size > *budget)
		return false;
	*budget -= header->sh_size;
	return true;
}

/* Where the names of sections are, if they can be read. */
static int find_names(Elf *elf, size_t *names, size_t *budget)
{
	GElf_Shdr header;
	size_t sections;

	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrnum(elf, &sections) ||
		sections > SECTIONS_MAX || elf_getshdrstrndx(elf, names) ||
		!gelf_getshdr(elf_getscn(elf, *names), &header) || !afford(budget, &header))
		return -ENOEXEC;
	return 0;
}

static int add_elf(struct trace_events *events, Elf *elf)
{
	size_t names, address, budget = BYTES_MAX;
	Elf_Scn *section = NULL;
	int ret = find_names(elf, &names, &budget);

	if (ret)
		return ret;
	address = gelf_getclass(elf) == ELFCLASS32 ? 4 : 8;
	while (!ret && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && !strcmp(name, SECTION))
			ret = afford(&budget, &header) ? add_section(events, section, address)
						       : -E2BIG;
	}
	return ret;
}

int elf_events(const char *path, struct trace_events *events)
{
	struct stat st;
	Elf *elf;
	/* The path may be a pipe by now: do not wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		ret = -ENOEXEC;
	elf_version(EV_CURRENT);
	/* Read, not mapped: a file that is truncated meanwhile would raise SIGBUS. */
	elf = ret ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	if (!ret)
		ret = elf ? add_elf(events, elf) : -ENOEXEC;
	elf_end(elf);
	close(fd);
	return ret;
}

void elf_events_free(struct trace_events *events)
{
	free(events->list);
	*events = (struct trace_events){0};
}
