/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
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

static int begin(struct rt_image *i, int fd)
{
	*i = (struct rt_image){.fd = fd};
	if (fd < 0)
		return fd;
	elf_version(EV_CURRENT);
	/* Read, not mapped: a file that is truncated meanwhile would raise SIGBUS. */
	i->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (i->elf && elf_kind(i->elf) == ELF_K_ELF)
		return 0;
	rt_image_close(i);
	return -ENOEXEC;
}

/* What loading adds to the addresses; map is that of the first segment. */
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

int rt_image_open(struct rt_image *i, const struct rt_process *p, const struct rt_map *map)
{
	int ret = begin(i, rt_process_file(p, map));

	if (!ret)
		ret = find_base(i, map);
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

/* In a table of symbols of this type. 0: not found, or not defined there. */
static uint64_t find(const struct rt_image *i, unsigned type, const char *name)
{
	Elf_Scn *section = NULL;
	GElf_Shdr h;
	GElf_Sym sym;

	while ((section = elf_nextscn(i->elf, section))) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &h) || h.sh_type != type || !h.sh_entsize)
			continue;
		data = elf_getdata(section, NULL);
		for (size_t n = 0; data && n < h.sh_size / h.sh_entsize; n++) {
			const char *text;

			if (!gelf_getsym(data, (int)n, &sym))
				break;
			text = sym.st_shndx == SHN_UNDEF
				       ? NULL
				       : elf_strptr(i->elf, h.sh_link, sym.st_name);
			if (text && !strcmp(text, name))
				return sym.st_value;
		}
	}
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

uint64_t rt_image_code(const struct rt_image *i, const void *bytes, size_t size)
{
	size_t count;
	GElf_Phdr h;

	if (elf_getphdrnum(i->elf, &count))
		return 0;
	for (size_t n = 0; n < count; n++) {
		Elf_Data *data;
		const char *at;

		if (!gelf_getphdr(i->elf, (int)n, &h) || h.p_type != PT_LOAD || !(h.p_flags & PF_X))
			continue;
		data = elf_getdata_rawchunk(i->elf, (int64_t)h.p_offset, h.p_filesz, ELF_T_BYTE);
		at = data ? memmem(data->d_buf, data->d_size, bytes, size) : NULL;
		if (at)
			return i->base + h.p_vaddr + (uint64_t)(at - (const char *)data->d_buf);
	}
	return 0;
}
