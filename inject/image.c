/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

/* The file belongs to the process and may have been made to exhaust memory, which libelf takes for
 * all section headers when it opens a file. Linkers make some dozens of each. */
#define BYTES_MAX    (256u << 20) /* limit for what one search reads */
#define SECTIONS_MAX 4096
#define SEGMENTS_MAX 512

/* Costs of opening a file, and of comparing a segment with a mapping, in bytes that are read. */
#define OPEN_COST    (64u << 10)
#define COMPARE_COST 16u

static _Thread_local uint64_t limit = UINT64_MAX;

void rt_image_limit(uint64_t bytes)
{
	limit = bytes;
}

bool rt_image_limit_reached(void)
{
	return !limit;
}

static bool afford(uint64_t bytes)
{
	limit -= bytes < limit ? bytes : limit;
	return limit;
}

/* Extended numbering, where the header's number of sections is 0, is for object files. */
static bool is_bounded(int fd)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr h32;
		Elf64_Ehdr h64;
	} u = {0};

	if (pread(fd, &u, sizeof(u), 0) < (ssize_t)sizeof(u.h32))
		return false;
	if (u.ident[EI_CLASS] == ELFCLASS64)
		return afford(OPEN_COST + u.h64.e_shnum * sizeof(Elf64_Shdr)) &&
		       u.h64.e_phnum <= SEGMENTS_MAX && u.h64.e_shnum <= SECTIONS_MAX &&
		       (u.h64.e_shnum || !u.h64.e_shoff);
	return afford(OPEN_COST + u.h32.e_shnum * sizeof(Elf32_Shdr)) &&
	       u.h32.e_phnum <= SEGMENTS_MAX && u.h32.e_shnum <= SECTIONS_MAX &&
	       (u.h32.e_shnum || !u.h32.e_shoff);
}

static int begin(struct rt_image *i, int fd)
{
	*i = (struct rt_image){.fd = fd};
	if (fd < 0)
		return fd;
	elf_version(EV_CURRENT);
	/* Read, not mapped: a file that is truncated meanwhile would raise SIGBUS. */
	i->elf = is_bounded(fd) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	if (i->elf && elf_kind(i->elf) == ELF_K_ELF)
		return 0;
	rt_image_close(i);
	return -ENOEXEC;
}

/* Offset that loading adds to the addresses; map is that of the first segment. */
static int find_base(struct rt_image *i, const struct rt_map *map)
{
	size_t count;
	GElf_Phdr h;

	if (elf_getphdrnum(i->elf, &count))
		return -ENOEXEC;
	for (size_t n = 0; n < count; n++) {
		if (!gelf_getphdr(i->elf, (int)n, &h))
			return -ENOEXEC;
		if (h.p_type == PT_LOAD) {
			i->base = map->start - map->offset - (h.p_vaddr - h.p_offset);
			return 0;
		}
	}
	return -ENOEXEC;
}

/* A process may map the file as data, too, where its code cannot be executed. */
static bool is_loaded(
	const struct rt_image *i, const struct rt_process *p, const struct rt_map *map)
{
	size_t count;
	GElf_Phdr h;

	if (elf_getphdrnum(i->elf, &count) || !afford(count * p->map_count * COMPARE_COST))
		return false;
	for (size_t n = 0; n < count; n++) {
		const struct rt_map *at;

		if (!gelf_getphdr(i->elf, (int)n, &h) || h.p_type != PT_LOAD || !(h.p_flags & PF_X))
			continue;
		at = rt_process_at(p, i->base + h.p_vaddr);
		if (!at || at->ino != map->ino || at->dev != map->dev || at->perms[2] != 'x' ||
			i->base + h.p_vaddr - at->start + at->offset != h.p_offset)
			return false;
	}
	return true;
}

int rt_image_open(struct rt_image *i, const struct rt_process *p, const struct rt_map *map)
{
	int ret = begin(i, limit ? rt_process_file(p, map) : -E2BIG);

	if (!ret)
		ret = find_base(i, map);
	if (!ret && !is_loaded(i, p, map))
		ret = -ENOEXEC;
	if (ret)
		rt_image_close(i);
	return ret;
}

int rt_image_open_file(struct rt_image *i, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return begin(i, fd < 0 ? -errno : fd);
}

void rt_image_close(struct rt_image *i)
{
	elf_end(i->elf);
	if (i->fd >= 0)
		close(i->fd);
	*i = (struct rt_image){.fd = -1};
}

bool rt_image_ours(const struct rt_image *i)
{
	GElf_Ehdr h;

	return gelf_getehdr(i->elf, &h) && h.e_ident[EI_CLASS] == ELFCLASS64 &&
	       h.e_machine == MACHINE;
}

/* The table of symbols of this type, which is one at most, and its names. */
static Elf_Data *find_table(const struct rt_image *i, unsigned type, Elf_Data **names)
{
	Elf_Scn *section = NULL, *linked;
	GElf_Shdr h, n;

	while ((section = elf_nextscn(i->elf, section)))
		if (gelf_getshdr(section, &h) && h.sh_type == type)
			break;
	linked = section ? elf_getscn(i->elf, h.sh_link) : NULL;
	if (!linked || !gelf_getshdr(linked, &n) || ((h.sh_flags | n.sh_flags) & SHF_COMPRESSED) ||
		n.sh_type != SHT_STRTAB || h.sh_size > BYTES_MAX ||
		n.sh_size > BYTES_MAX - h.sh_size || !afford(h.sh_size + n.sh_size))
		return NULL;
	*names = elf_getdata(linked, NULL);
	return *names ? elf_getdata(section, NULL) : NULL;
}

/* In a table of symbols of this type. 0: not found, or not defined there. */
static uint64_t find(const struct rt_image *i, unsigned type, const char *name)
{
	const size_t bytes = strlen(name) + 1;
	Elf_Data *names, *table = find_table(i, type, &names);
	GElf_Sym sym;

	/* Not elf_strptr(), which searches the end of each name. */
	for (int n = 0; table && gelf_getsym(table, n, &sym); n++)
		if (sym.st_shndx != SHN_UNDEF && sym.st_name < names->d_size &&
			names->d_size - sym.st_name >= bytes &&
			!memcmp((const char *)names->d_buf + sym.st_name, name, bytes))
			return sym.st_value;
	return 0;
}

uint64_t rt_image_symbol(const struct rt_image *i, const char *name)
{
	uint64_t value = find(i, SHT_DYNSYM, name);

	return value ? i->base + value : 0;
}

bool rt_image_has_hidden(const struct rt_image *i, const char *name)
{
	return find(i, SHT_SYMTAB, name) != 0;
}

/* Content of one segment in the file, if it has this flag; NULL: it has not, or *left bytes are too
 * few. */
static Elf_Data *segment(
	const struct rt_image *i, size_t n, unsigned flag, size_t *left, GElf_Phdr *h)
{
	if (!gelf_getphdr(i->elf, (int)n, h) || h->p_type != PT_LOAD || !(h->p_flags & flag) ||
		h->p_filesz > *left || !afford(h->p_filesz))
		return NULL;
	*left -= h->p_filesz;
	return elf_getdata_rawchunk(i->elf, (int64_t)h->p_offset, h->p_filesz, ELF_T_BYTE);
}

uint64_t rt_image_code(const struct rt_image *i, const void *bytes, size_t size)
{
	size_t count, left = BYTES_MAX;
	GElf_Phdr h;

	if (elf_getphdrnum(i->elf, &count))
		return 0;
	for (size_t n = 0; n < count; n++) {
		Elf_Data *data = segment(i, n, PF_X, &left, &h);
		const char *at = data ? memmem(data->d_buf, data->d_size, bytes, size) : NULL;

		if (at)
			return i->base + h.p_vaddr + (uint64_t)(at - (const char *)data->d_buf);
	}
	return 0;
}

static unsigned number_after(const Elf_Data *data, const char *text)
{
	const char *at = data->d_buf, *end = at + data->d_size;
	char digits[8];

	while ((at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
		at += strlen(text);
		snprintf(digits, sizeof(digits), "%.*s", (int)(end - at < 7 ? end - at : 7), at);
		if (atoi(digits) > 0)
			return (unsigned)atoi(digits);
	}
	return 0;
}

unsigned rt_image_number(const struct rt_image *i, const char *text)
{
	size_t count, left = BYTES_MAX;
	unsigned number = 0;
	GElf_Phdr h;

	if (elf_getphdrnum(i->elf, &count))
		return 0;
	for (size_t n = 0; n < count && !number; n++) {
		Elf_Data *data = segment(i, n, PF_R, &left, &h);

		number = data && data->d_buf ? number_after(data, text) : 0;
	}
	return number;
}
