/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* A function that only a driver of ethdev calls. */
#define DRIVERS_ONLY "rte_eth_dev_allocate"

struct replacement {
	const char *name;
	uintptr_t from, address; /* from: only slots that hold it; 0: all */
	bool lazy;               /* and slots that no call has filled yet */
	bool drivers;            /* the slots of ethdev's drivers, too */
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

/* PROT_… of the mapping with this address, or -errno. */
static int protection_of(uintptr_t at)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int ret = f ? -EFAULT : -errno;
	char *line = NULL;
	size_t size = 0;

	while (ret < 0 && f && getline(&line, &size, f) > 0) {
		unsigned long begin, end;
		char p[4];

		if (sscanf(line, "%lx-%lx %3c", &begin, &end, p) == 3 && at >= begin && at < end)
			ret = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
			      (p[2] == 'x' ? PROT_EXEC : 0);
	}
	free(line);
	if (f)
		fclose(f);
	return ret;
}

/* The loader keeps the pages wholly inside PT_GNU_RELRO read-only, once it has filled all their
 * slots. While they can be written, it is at work in another thread, and protects them when it has
 * finished: they are left to it. Other threads read the slot meanwhile: with the old or the new
 * address. Returns the number of slots stored, or -errno. */
static int store(const struct dl_phdr_info *o, uintptr_t *slot, uintptr_t address)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = (void *)((uintptr_t)slot & -page);
	bool sealed = contains(o, PT_GNU_RELRO, (uintptr_t)slot, page);
	int before = protection_of((uintptr_t)slot);

	if (before < 0)
		return before;
	if (sealed && before & PROT_WRITE)
		return 0;
	if (!sealed && !(before & PROT_WRITE))
		return -EACCES;
	if (sealed && mprotect(at, page, before | PROT_WRITE))
		return -errno;
	rt_store_release(slot, address);
	return sealed && mprotect(at, page, before) ? -errno : 1;
}

/* Whether an entry is a slot of this function. */
static bool is_slot_of(const struct tables *t, const ElfW(Rela) * e, const char *name)
{
	const ElfW(Sym) *s = (const ElfW(Sym) *)t->symbols + ELF64_R_SYM(e->r_info);
	uint32_t type = ELF64_R_TYPE(e->r_info);

	return (type == TYPE_JUMP_SLOT || type == TYPE_GLOB_DAT || type == TYPE_ADDRESS) &&
	       !strcmp((const char *)t->strings + s->st_name, name);
}

/* The next slot of a function from entry *at of both tables on. NULL: none. */
static const ElfW(Rela) * next_slot(const struct tables *t, const char *name, size_t *at)
{
	for (;; (*at)++) {
		size_t first = t->relocations[0] ? t->bytes[0] / sizeof(ElfW(Rela)) : 0;
		unsigned k = *at >= first;
		size_t i = k ? *at - first : *at;
		const ElfW(Rela) *e = (const ElfW(Rela) *)t->relocations[k] + i;

		if (k && (!t->relocations[1] || i >= t->bytes[1] / sizeof(*e)))
			return NULL;
		if (is_slot_of(t, e, name)) {
			(*at)++;
			return e;
		}
	}
}

static bool imports(const struct tables *t, const char *name)
{
	size_t at = 0;

	return next_slot(t, name, &at);
}

/* A slot with another address is another function's, or a variable that the application has set
 * since. One that a lazy library has not filled yet points into the library. */
static bool is_wanted(const struct replacement *r, const struct dl_phdr_info *o,
	const ElfW(Rela) * e, uintptr_t now)
{
	if (!r->from || now == r->from)
		return now != r->address;
	return r->lazy && ELF64_R_TYPE(e->r_info) == TYPE_JUMP_SLOT && contains(o, PT_LOAD, now, 1);
}

static int replace_in(struct dl_phdr_info *o, size_t size, void *data)
{
	struct replacement *r = data;
	struct tables t = tables_of(o);
	const ElfW(Rela) * e;
	size_t at = 0;

	while ((e = next_slot(&t, r->name, &at))) {
		uintptr_t *slot = (uintptr_t *)(o->dlpi_addr + e->r_offset);
		int stored;

		if (!is_wanted(r, o, e, rt_load(slot)))
			continue;
		if (!r->drivers && imports(&t, DRIVERS_ONLY))
			return 0;
		stored = store(o, slot, r->address);
		r->slots += stored > 0;
		r->error = r->error ? r->error : stored < 0 ? stored : 0;
	}
	return 0;
}

/* Skips the object that has the address: its calls are those of the replacement itself. */
static int replace_elsewhere(struct dl_phdr_info *o, size_t size, void *data)
{
	const struct replacement *r = data;

	return contains(o, PT_LOAD, r->address, 1) ? 0 : replace_in(o, size, data);
}

int rt_imports_replace(const char *name, uintptr_t address)
{
	struct replacement r = {.name = name, .address = address, .drivers = true};

	dl_iterate_phdr(replace_elsewhere, &r);
	return r.error ? r.error : r.slots;
}

int rt_imports_divert(const struct rt_import *i)
{
	struct replacement r = {
		.name = i->name, .from = i->theirs, .address = i->ours, .lazy = true};

	dl_iterate_phdr(replace_in, &r);
	return r.error ? r.error : r.slots;
}

int rt_imports_restore(const struct rt_import *i)
{
	struct replacement r = {
		.name = i->name, .from = i->ours, .address = i->theirs, .drivers = true};

	dl_iterate_phdr(replace_in, &r);
	return r.error ? r.error : r.slots;
}

static int first_object(struct dl_phdr_info *o, size_t size, void *loads)
{
	*(uint64_t *)loads = o->dlpi_adds;
	return 1;
}

uint64_t rt_imports_loads(void)
{
	uint64_t loads = 0;

	dl_iterate_phdr(first_object, &loads);
	return loads;
}
