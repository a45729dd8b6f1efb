/* SPDX-License-Identifier: BSD-3-Clause */
/* USDT events of a file: notes of type 3 and owner stapsdt, of three addresses (of the event, of
 * section BASE when the note was made, of the semaphore or 0) and three texts (provider, event,
 * arguments). */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/foreign.h"
#include "events.h"

#define OWNER      "stapsdt"
#define PROVIDER   "ringtap"
#define SECTION    ".note.stapsdt"
#define BASE       ".stapsdt.base"
#define NOTE_TYPE  3
#define EVENTS_MAX 1024
/* Limit of bytes of notes and names read from one file: sections may overlap, and may lie in holes
 * of the file. */
#define BYTES_MAX    (1u << 20)
#define SECTIONS_MAX 4096

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

struct note {
	GElf_Addr address, base, semaphore;
	const char *provider, *name, *arguments;
};

/* A search for notes: take() is called for each, and returns 0, or -errno, which ends it. */
struct search {
	Elf *elf;
	GElf_Addr base; /* address of section BASE; 0: there is none */
	int (*take)(struct search *s, const struct note *n);
	void *ctx;
};

static int add(struct search *s, const struct note *n)
{
	struct usdt_events *events = s->ctx;
	const char *name = n->name, *arguments = n->arguments;
	struct usdt_event e = {.count = 1}, *new;

	if (strcmp(n->provider, PROVIDER))
		return 0;
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
	new = rt_array_add(events->list, events->count);
	if (!new)
		return -ENOMEM;
	*new = e;
	return 0;
}

/* The address at p, of 4 or 8 bytes. */
static GElf_Addr address_at(const char *p, size_t bytes)
{
	uint32_t short_one = 0;
	GElf_Addr a = 0;

	memcpy(bytes == 4 ? (void *)&short_one : (void *)&a, p, bytes);
	return bytes == 4 ? short_one : a;
}

static int take_note(struct search *s, const char *desc, size_t size, size_t address)
{
	const char *end = desc + size, *p = desc + 3 * address;
	struct note n;

	if (size < 3 * address)
		return -ENOEXEC;
	n.address = address_at(desc, address);
	n.base = address_at(desc + address, address);
	n.semaphore = address_at(desc + 2 * address, address);
	n.provider = text_of(&p, end);
	n.name = n.provider ? text_of(&p, end) : NULL;
	n.arguments = n.name ? text_of(&p, end) : NULL;
	return n.arguments ? s->take(s, &n) : -ENOEXEC;
}

static int take_section(struct search *s, Elf_Scn *section, size_t address)
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
			ret = take_note(s, bytes + desc, note.n_descsz, address);
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

/* Where the section was linked to; 0: there is none. */
static GElf_Addr find_base(Elf *elf, size_t names)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;

		if (name && !strcmp(name, BASE))
			return header.sh_addr;
	}
	return 0;
}

static int search_elf(struct search *s)
{
	size_t names, address, budget = BYTES_MAX;
	Elf_Scn *section = NULL;
	int ret = find_names(s->elf, &names, &budget);

	if (ret)
		return ret;
	s->base = find_base(s->elf, names);
	address = gelf_getclass(s->elf) == ELFCLASS32 ? 4 : 8;
	while (!ret && (section = elf_nextscn(s->elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(s->elf, names, header.sh_name);
		if (name && !strcmp(name, SECTION))
			ret = afford(&budget, &header) ? take_section(s, section, address) : -E2BIG;
	}
	return ret;
}

static int search(const char *path, struct search *s)
{
	struct stat st;
	int fd = rt_foreign_open(AT_FDCWD, path, 0, &st), ret;

	if (fd < 0)
		return fd == -EPERM ? -ENOEXEC : fd;
	elf_version(EV_CURRENT);
	/* Read, not mapped: a file that is truncated meanwhile would raise SIGBUS. */
	s->elf = elf_begin(fd, ELF_C_READ, NULL);
	ret = s->elf ? search_elf(s) : -ENOEXEC;
	elf_end(s->elf);
	close(fd);
	return ret;
}

int elf_events(const char *path, struct usdt_events *events)
{
	struct search s = {.take = add, .ctx = events};

	return search(path, &s);
}

void elf_events_free(struct usdt_events *events)
{
	free(events->list);
	*events = (struct usdt_events){0};
}

/* ---- places */

struct place_search {
	const char *provider, *name;
	struct usdt_place *out;
	unsigned max, count;
};

/* Where an address lies in the file; 0: nowhere. */
static uint64_t offset_of(Elf *elf, GElf_Addr address)
{
	GElf_Phdr p;
	size_t count;

	if (elf_getphdrnum(elf, &count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && address >= p.p_vaddr &&
			address - p.p_vaddr < p.p_filesz)
			return address - p.p_vaddr + p.p_offset;
	}
	return 0;
}

static int add_place(struct search *s, const struct note *n)
{
	struct place_search *p = s->ctx;
	/* A file that was prelinked has moved since the note was made. */
	GElf_Addr moved = s->base && n->base ? s->base - n->base : 0;
	struct usdt_place place = {0};

	if (strcmp(n->provider, p->provider) || strcmp(n->name, p->name))
		return 0;
	place.offset = offset_of(s->elf, n->address + moved);
	if (!place.offset)
		return -ENOEXEC;
	if (n->semaphore)
		place.semaphore = offset_of(s->elf, n->semaphore + moved);
	if (p->count == p->max)
		return -E2BIG;
	p->out[p->count++] = place;
	return 0;
}

int elf_places(const char *path, const char *provider, const char *name, struct usdt_place *out,
	unsigned max)
{
	struct place_search p = {.provider = provider, .name = name, .out = out, .max = max};
	struct search s = {.take = add_place, .ctx = &p};
	int ret = search(path, &s);

	return ret ? ret : (int)p.count;
}
