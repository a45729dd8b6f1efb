/* SPDX-License-Identifier: BSD-3-Clause */
/* USDT events of an ELF file, and their places in it. */
#ifndef RINGTAP_USDT_EVENTS_H
#define RINGTAP_USDT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

struct usdt_event {
	char name[64];
	char arguments[256]; /* as in the note, "2@%di 4@%esi" */
	unsigned count;      /* places with these arguments */
};

struct usdt_events {
	struct usdt_event *list;
	size_t count;
};

/* Adds the file's USDT events of provider ringtap. 0; -ENOEXEC: no ELF file, or a broken one;
 * -E2BIG: beyond the limit; -errno. The file is not trusted. */
int elf_events(const char *path, struct usdt_events *events);
void elf_events_free(struct usdt_events *events);

/* Where an event is in its file; semaphore: the counter of its tracers, 0: none. */
struct usdt_place {
	uint64_t offset, semaphore;
};

/* The places of an event of any provider, at most max. Their number, or -errno as elf_events(). */
int elf_places(const char *path, const char *provider, const char *name, struct usdt_place *out,
	unsigned max);

#endif
