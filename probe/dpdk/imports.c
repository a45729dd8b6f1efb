/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/atomics.h"
#include "imports.h"

#ifdef __x86_64__
#define TYPE_JUMP_SLOT R_X86_64_JUMP_SLOT
#define TYPE_GLOB_DAT  R_X86_64_GLOB_DAT
#define TYPE_ADDRESS   R_X86_64_64
#else
#define TYPE_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define TYPE_GLOB_DAT  R_AARCH64_GLOB_DAT
#define TYPE_ADDRESS   R_AARCH64_ABS64
#endif

struct replacement {
	const char *name;
	uintptr_t address;
	int slots, error;
};

/* The tables of an object, by DT_* of the dynamic section. */
struct tables {
	uintptr_t symbols, strings;
	uintptr_t relocations[2];
	size_t bytes[2];
};

static bool contains(const struct dl_phdr_info *o, uint32_t type, uintptr_t address, size_t page)
{
	for (unsigned i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &o->dlpi_phdr[i];
		uintptr_t begin = (o->dlpi_addr + h->p_vaddr) & -page;
		uintptr_t end = (o->dlpi_addr + h->p_vaddr + h->p_memsz) & -page;

		if (h->p_type == type && address >= begin && address < end)
			return true;
	}
	return false;
}

/* The loader adds the base to the addresses of most objects, but not to those of the vDSO. */
static uintptr_t placed(const struct dl_phdr_info *o, uintptr_t at)
{
	return at < o->dlpi_addr ? at + o->dlpi_addr : at;
}

static struct tables tables_of(const struct dl_phdr_info *o)
{
	const ElfW(Dyn) *d = NULL;
	struct tables t = {0};

	for (unsigned i = 0; i < o->dlpi_phnum; i++) {
		if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	}
	for (; d && d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB: t.symbols = placed(o, d->d_un.d_ptr); break;
		case DT_STRTAB: t.strings = placed(o, d->d_un.d_ptr); break;
		case DT_JMPREL: t.relocations[0] = placed(o, d->d_un.d_ptr); break;
		case DT_PLTRELSZ: t.bytes[0] = d->d_un.d_val; break;
		case DT_RELA: t.relocations[1] = placed(o, d->d_un.d_ptr); break;
		case DT_RELASZ: t.bytes[1] = d->d_un.d_val; break;
		}
	}
	return t;
}

/* The loader keeps the pages wholly inside PT_GNU_RELRO read-only; a slot in another page can be
 * written. Other threads read the slot meanwhile: with the old or the new address. */
static int store(const struct dl_phdr_info *o, uintptr_t *slot, uintptr_t address)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = (void *)((uintptr_t)slot & -page);
	bool read_only = contains(o, PT_GNU_RELRO, (uintptr_t)slot, page);

	if (read_only && mprotect(at, page, PROT_READ | PROT_WRITE))
		return -errno;
	rt_store_release(slot, address);
	return read_only && mprotect(at, page, PROT_READ) ? -errno : 0;
}

static int replace_in(struct dl_phdr_info *o, size_t size, void *data)
{
	struct replacement *r = data;
	struct tables t = tables_of(o);

	if (contains(o, PT_LOAD, r->address, 1))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		const ElfW(Rela) *e = (const void *)t.relocations[i];

		for (size_t n = t.bytes[i] / sizeof(*e); e && n--; e++) {
			const ElfW(Sym) *s = (const ElfW(Sym) *)t.symbols + ELF64_R_SYM(e->r_info);
			uint32_t type = ELF64_R_TYPE(e->r_info);

			if ((type != TYPE_JUMP_SLOT && type != TYPE_GLOB_DAT &&
				    type != TYPE_ADDRESS) ||
				strcmp((const char *)t.strings + s->st_name, r->name))
				continue;
			r->error = store(o, (uintptr_t *)(o->dlpi_addr + e->r_offset), r->address);
			if (r->error)
				return 1;
			r->slots++;
		}
	}
	return 0;
}

int rt_imports_replace(const char *name, uintptr_t address)
{
	struct replacement r = {.name = name, .address = address};

	dl_iterate_phdr(replace_in, &r);
	return r.error ? r.error : r.slots;
}
