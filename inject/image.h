/* SPDX-License-Identifier: BSD-3-Clause */
/* An ELF file, as it is mapped in a process or on its own. */
#ifndef RINGTAP_INJECT_IMAGE_H
#define RINGTAP_INJECT_IMAGE_H

#include "process.h"

struct rt_image {
	int fd;
	void *elf;     /* Elf * */
	uint64_t base; /* added to the file's addresses */
};

/* Limits what this thread reads of all files together from now on; a process may map 65,530 of
 * them, and large ones. */
void rt_image_limit(uint64_t bytes);
/* Whether something has not been read because of that. */
bool rt_image_limit_reached(void);

/* Opens the file of a mapping with offset 0. 0 or -errno; -ENOEXEC: no ELF file of usual
 * dimensions, or mapped there as data, not as a program; -E2BIG: the limit was reached. Close with
 * rt_image_close(). */
int rt_image_open(struct rt_image *i, const struct rt_process *p, const struct rt_map *map);
/* Opens a file; base is 0. */
int rt_image_open_file(struct rt_image *i, const char *path);
void rt_image_close(struct rt_image *i);

/* Whether it is for this machine: class and architecture. */
bool rt_image_ours(const struct rt_image *i);
/* The address in the process of a symbol that others can bind to (hidden: of any symbol); 0: it
 * has none. */
uint64_t rt_image_symbol(const struct rt_image *i, const char *name);
bool rt_image_has_hidden(const struct rt_image *i, const char *name);
/* The address of these bytes in executable segments; 0: they are nowhere. */
uint64_t rt_image_code(const struct rt_image *i, const void *bytes, size_t size);
/* The first decimal number other than 0 that follows this text in what is loaded of the file; 0:
 * there is none. */
unsigned rt_image_number(const struct rt_image *i, const char *text);

#endif
