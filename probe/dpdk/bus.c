/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_eal.h>
#include <rte_version.h>

#include "bus.h"
#include "common/atomics.h"
#include "compat.h"
#include "imports.h"
#include "probe/above.h"
#include "teardown.h"

#define RELEASE(year, month) ((year)*12 + (month))

/*
 * A letter for each word: next and previous bus (l), name (n), a flag (b), functions that every bus
 * has, scan (S), probe (P) and find_device (F), and that some have (o), cleanup (C) being one of
 * them, scan_mode (m), heads of lists (h) and their ends (t).
 *
 * 21.11: as 22.11, without cleanup.
 * 22.11: plug, unplug, parse, devargs_parse, dma_map, dma_unmap; get_iommu_class, dev_iterate,
 * hot_unplug_handler, sigbus_handler.
 * 26.07: match, probe_device, unplug_device, parse, dev_compare, devargs_parse, dma_map, dma_unmap;
 * get_iommu_class, dev_iterate, hot_unplug_handler, sigbus_handler, free_device.
 */
struct rt_bus_layout {
	unsigned from, before;
	const char *words;
};

static const struct rt_bus_layout layouts[] = {
	{RELEASE(21, 11), RELEASE(22, 11), "llnSPFoooooomoooo"},
	{RELEASE(22, 11), RELEASE(26, 7), "llnSPFoooooomooooC"},
	{RELEASE(26, 7), RELEASE(26, 11), "llnbSPFoooooooomoooooChtht"},
};

static union {
	struct {
		uintptr_t next, *previous;
		const char *name;
	};
	uintptr_t words[RT_BUS_WORDS];
} own;

static const struct rt_bus_layout *layout; /* NULL: own is not registered */
static bool end_announced = RT_COMPAT_BUS_CLEANUP;

void rte_bus_register(struct rte_bus *bus); /* see bus.h */

static int nothing(void)
{
	return 0;
}

static int on_probe(void)
{
	rt_probe_buses_begin();
	return 0;
}

static void *no_device(void)
{
	return NULL;
}

static int on_cleanup(void)
{
	rt_teardown();
	return 0;
}

const struct rt_bus_layout *rt_bus_layout(const char *version)
{
	unsigned year, month, release;

	if (sscanf(version + strcspn(version, "0123456789"), "%u.%u", &year, &month) != 2)
		return NULL;
	release = RELEASE(year, month);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (release >= layouts[i].from && release < layouts[i].before)
			return &layouts[i];
	}
	return NULL;
}

static int has_code_at(struct dl_phdr_info *info, size_t size, void *address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_LOAD && h->p_flags & PF_X &&
			(uintptr_t)address - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
			return 1;
	}
	return 0;
}

static bool fits(char letter, uintptr_t word, const char *name)
{
	switch (letter) {
	case 'n': return word == (uintptr_t)name;
	case 'b': return word <= 1;
	case 'm': return (uint32_t)word <= 2; /* RTE_BUS_SCAN_BLOCKLIST */
	case 't': return word;
	case 'l':
	case 'h': return true;
	case 'S':
	case 'P':
	case 'F': return dl_iterate_phdr(has_code_at, (void *)word);
	default: return !word || dl_iterate_phdr(has_code_at, (void *)word);
	}
}

bool rt_bus_fits(const struct rt_bus_layout *l, const void *bus)
{
	const uintptr_t *words = bus;

	for (size_t i = 0; l->words[i]; i++) {
		if (!fits(l->words[i], words[i], rt_compat_bus_name(bus)))
			return false;
	}
	return true;
}

/* Releases pass other parameters to some of these functions, which take none. */
void rt_bus_lay_out(const struct rt_bus_layout *l, uintptr_t bus[RT_BUS_WORDS])
{
	for (size_t i = 0; l->words[i]; i++) {
		switch (l->words[i]) {
		case 'n': bus[i] = (uintptr_t) "ringtap"; break;
		case 'S': bus[i] = (uintptr_t)nothing; break;
		case 'P': bus[i] = (uintptr_t)on_probe; break;
		case 'F': bus[i] = (uintptr_t)no_device; break;
		case 'C': bus[i] = (uintptr_t)on_cleanup; break;
		case 't': bus[i] = (uintptr_t)&bus[i - 1]; break;
		}
	}
}

static int is_own(const struct rte_bus *bus, const void *data)
{
	return (const void *)bus == &own;
}

static int is_known(const struct rte_bus *bus, const void *l)
{
	return (const void *)bus == &own || rt_bus_fits(l, bus);
}

/* Not by a macro of TAILQ, for the order of the stores. In a process that the probe is attached to,
 * other threads may go through the list meanwhile: they find it with or without the new first one,
 * and that one is complete. They need no barrier, as they read it by the address that they have
 * loaded. */
static void insert_before(uintptr_t *first)
{
	uintptr_t *before = (uintptr_t *)first[1];

	own.previous = before;
	own.next = (uintptr_t)first;
	rt_store_release(before, (uintptr_t)&own);
	first[1] = (uintptr_t)&own.next;
}

bool rt_bus_known(void)
{
	return layout && !rte_bus_find(NULL, is_known, layout);
}

bool rt_bus_announces_end(void)
{
	return end_announced;
}

static int cleanup_called(void)
{
	rt_teardown();
	return rte_eal_cleanup();
}

/* Without cleanup of buses, the calls of rte_eal_cleanup() are replaced. A static DPDK has calls
 * that pass no slot. */
static bool replace_cleanup(void)
{
	Dl_info info;
	const char *slash;

	if (!dladdr((void *)(uintptr_t)rte_eal_cleanup, &info))
		return false;
	slash = strrchr(info.dli_fname, '/');
	return !strncmp(slash ? slash + 1 : info.dli_fname, "librte_eal.so", 13) &&
	       rt_imports_replace("rte_eal_cleanup", (uintptr_t)cleanup_called) >= 0;
}

/* Constructors and EAL's start run in one thread. Constructors of drivers, which change the list as
 * well, have the dynamic loader's lock, as this one has. */
__attribute__((constructor)) static void register_bus(void)
{
	const struct rt_bus_layout *l = rt_bus_layout(rte_version());
	struct rte_bus *first;

	if (!l || rte_bus_find(NULL, is_known, l))
		return;
	rt_bus_lay_out(l, own.words);
	layout = l;
	if (!RT_COMPAT_BUS_CLEANUP)
		end_announced = replace_cleanup();
	first = rte_bus_find(NULL, is_own, NULL);
	if (first)
		insert_before((uintptr_t *)first);
	else
		rte_bus_register((struct rte_bus *)&own);
}
