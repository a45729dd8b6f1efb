/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/array.h"
#include "scope.h"

/* ---- where DPDK is */

struct names {
	char **list;
	size_t count;
};

/* dlopen() must not be called here, as its locks are taken in the other order. */
static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct names *n = arg;
	char **name = rt_array_add(n->list, n->count);

	if (!name)
		return 1;
	*name = strdup(info->dlpi_name);
	n->count -= !*name;
	return 0;
}

/* The object that defines the symbol, if this one or one that it needs does. */
static void *defined_in(const char *file, const char *symbol, struct link_map **map)
{
	void *object = file[0] ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL, *found;
	Dl_info info;

	if (!object)
		return NULL;
	found = dlsym(object, symbol);
	if (found && !dladdr1(found, &info, (void **)map, RTLD_DL_LINKMAP))
		found = NULL;
	dlclose(object);
	return found;
}

static void add(struct rt_scope *s, const struct link_map *map)
{
	for (unsigned i = 0; i < s->count; i++) {
		if (!strcmp(s->files[i], map->l_name))
			return;
	}
	if (s->count < sizeof(s->files) / sizeof(s->files[0]))
		snprintf(s->files[s->count++], PATH_MAX, "%s", map->l_name);
}

void rt_scope_add(struct rt_scope *s, void *object)
{
	struct link_map *map;

	if (!dlinfo(object, RTLD_DI_LINKMAP, &map))
		add(s, map);
}

void *rt_scope_find(struct rt_scope *s, const char *symbol, bool *several)
{
	void *found = dlsym(RTLD_DEFAULT, symbol);
	struct link_map *map = NULL;
	struct names n = {0};

	*several = false;
	if (found)
		return found;
	dl_iterate_phdr(collect, &n);
	for (size_t i = 0; i < n.count; i++) {
		struct link_map *in;
		void *at = defined_in(n.list[i], symbol, &in);

		if (at && found && at != found && !*several && !s->count) {
			snprintf(s->files[0], PATH_MAX, "%s", map->l_name);
			snprintf(s->files[1], PATH_MAX, "%s", in->l_name);
		}
		*several |= at && found && at != found;
		if (at && !found) {
			found = at;
			map = in;
		}
		free(n.list[i]);
	}
	free(n.list);
	if (!found || *several)
		return NULL;
	add(s, map);
	return found;
}

/* ---- an object that needs others */

#define PAGE 0x10000 /* the largest of all processors */

/* Without symbols and code. The dynamic loader loads what it needs, of which all but the last are
 * loaded already, and resolves their symbols in this order. */
struct image {
	ElfW(Ehdr) header;
	ElfW(Phdr) segments[3];
	ElfW(Dyn) dynamic[16];
	ElfW(Sym) none;
	char names[4 * PATH_MAX];
};
static_assert(sizeof(struct image) < PAGE, "one segment");

static const ElfW(Ehdr) * own_header(void)
{
	Dl_info info;

	return dladdr(rt_scope_open, &info) ? info.dli_fbase : NULL;
}

static void fill_segments(struct image *i)
{
	const size_t at = offsetof(struct image, dynamic);

	i->segments[0] = (ElfW(Phdr)){.p_type = PT_LOAD,
		.p_flags = PF_R | PF_W,
		.p_filesz = sizeof(*i),
		.p_memsz = sizeof(*i),
		.p_align = PAGE};
	i->segments[1] = (ElfW(Phdr)){.p_type = PT_DYNAMIC,
		.p_flags = PF_R | PF_W,
		.p_offset = at,
		.p_vaddr = at,
		.p_filesz = sizeof(i->dynamic),
		.p_memsz = sizeof(i->dynamic),
		.p_align = sizeof(void *)};
	/* Without it, the dynamic loader would make all stacks executable. */
	i->segments[2] = (ElfW(Phdr)){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
}

static void fill(struct image *i, const struct rt_scope *s, const char *path)
{
	size_t used = 1;
	ElfW(Dyn) *d = i->dynamic;

	i->header = *own_header();
	i->header.e_type = ET_DYN;
	i->header.e_entry = i->header.e_shoff = 0;
	i->header.e_shnum = i->header.e_shstrndx = 0;
	i->header.e_phoff = offsetof(struct image, segments);
	i->header.e_phnum = sizeof(i->segments) / sizeof(i->segments[0]);
	fill_segments(i);
	for (unsigned n = 0; n <= s->count; n++) {
		const char *name = n < s->count ? s->files[n] : path;

		*d++ = (ElfW(Dyn)){.d_tag = DT_NEEDED, .d_un.d_val = used};
		used += (size_t)snprintf(&i->names[used], PATH_MAX, "%s", name) + 1;
	}
	*d++ = (ElfW(Dyn)){DT_STRTAB, {offsetof(struct image, names)}};
	*d++ = (ElfW(Dyn)){DT_STRSZ, {sizeof(i->names)}};
	*d++ = (ElfW(Dyn)){DT_SYMTAB, {offsetof(struct image, none)}};
	*d++ = (ElfW(Dyn)){DT_SYMENT, {sizeof(i->none)}};
}

/* By a path that no other part of the process uses: the dynamic loader compares paths first, and
 * the number of the descriptor is used again. */
static void *open_memory(const struct image *i, char *err, size_t errlen)
{
	int fd = memfd_create("ringtap-scope", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *object = NULL;
	char path[64];

	if (fd < 0 || write(fd, i, sizeof(*i)) != (ssize_t)sizeof(*i)) {
		snprintf(err, errlen, "memfd_create() failed: %s", strerror(errno));
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/../fd/%d", fd);
		object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (fd >= 0)
		close(fd);
	return object;
}

void *rt_scope_open(const struct rt_scope *s, const char *path, char *err, size_t errlen)
{
	struct image *i;

	err[0] = 0;
	if (!s->count)
		return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	i = own_header() ? calloc(1, sizeof(*i)) : NULL;
	if (!i) {
		snprintf(err, errlen, "there is not enough memory");
		return NULL;
	}
	fill(i, s, path);
	if (!open_memory(i, err, errlen)) {
		free(i);
		return NULL;
	}
	free(i);
	return dlopen(path, RTLD_NOW | RTLD_NOLOAD);
}
