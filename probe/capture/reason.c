/* SPDX-License-Identifier: BSD-3-Clause */
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "common/atomics.h"
#include "fate.h"
#include "probe/above.h"
#include "probe/dpdk/imports.h"
#include "reason.h"
#include "ringtap/reason.h"

#define NOTE_TYPE 1u
#define PROBES    64u /* numbers that are looked at for a text */

struct rt_session *rt_reason_sessions[RT_REASON_SESSIONS];

static uint64_t loads; /* rt_imports_loads() when the sites were set; 0: nobody listens */

/* ---- the sites in loaded objects ---- */

/* False: the object says that it has something where it has no memory that can be written. */
static bool is_own(const struct dl_phdr_info *o, uintptr_t at, size_t size)
{
	for (unsigned i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &o->dlpi_phdr[i];
		uintptr_t begin = o->dlpi_addr + h->p_vaddr;

		if (h->p_type == PT_LOAD && h->p_flags & PF_W && at >= begin &&
			at - begin < h->p_memsz && size <= h->p_memsz - (at - begin))
			return true;
	}
	return false;
}

/* A thread may be reporting meanwhile: it reads one of the two values of note. */
static void set(struct ringtap_reason_site *site, bool on)
{
	rt_store_release(&site->note, on ? rt_reason_given : NULL);
	rt_store_release(&site->listens.by.probe, on);
}

/* The description of one of our notes: the distance to the site. */
static void set_noted(const struct dl_phdr_info *o, const uint8_t *description, bool on)
{
	uintptr_t at;
	int64_t distance;

	memcpy(&distance, description, sizeof(distance));
	at = (uintptr_t)description + (uintptr_t)distance;
	if (at % _Alignof(struct ringtap_reason_site) == 0 &&
		is_own(o, at, sizeof(struct ringtap_reason_site)))
		set((void *)at, on);
}

static size_t aligned(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static void set_in_notes(const struct dl_phdr_info *o, const ElfW(Phdr) * h, bool on)
{
	const uint8_t *p = (const void *)(o->dlpi_addr + h->p_vaddr), *end = p + h->p_memsz;

	while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *n = (const void *)p;
		size_t name = aligned(n->n_namesz), bytes = aligned(n->n_descsz);

		p += sizeof(*n);
		if (name > (size_t)(end - p) || bytes > (size_t)(end - p) - name)
			return;
		if (n->n_type == NOTE_TYPE && n->n_namesz == sizeof("ringtap") &&
			!memcmp(p, "ringtap", sizeof("ringtap")) && n->n_descsz == sizeof(int64_t))
			set_noted(o, p + name, on);
		p += name + bytes;
	}
}

static int set_in_object(struct dl_phdr_info *o, size_t size, void *on)
{
	for (unsigned i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &o->dlpi_phdr[i];

		if (h->p_type == PT_NOTE && h->p_align <= 4)
			set_in_notes(o, h, *(const bool *)on);
	}
	return 0;
}

/* Objects stay loaded during the call. */
static void set_all(bool on)
{
	loads = on ? rt_imports_loads() : 0;
	dl_iterate_phdr(set_in_object, &on);
}

/* ---- sessions ---- */

void rt_reason_listen(struct rt_session *s)
{
	for (unsigned i = 0; i < RT_REASON_SESSIONS; i++) {
		if (rt_load(&rt_reason_sessions[i]))
			continue;
		/* The session is complete. Pairs with the acquire in rt_reason_given(). */
		rt_store_release(&rt_reason_sessions[i], s);
		break;
	}
	if (!loads)
		set_all(true);
}

void rt_reason_unlisten(const struct rt_session *s)
{
	bool others = false;

	for (unsigned i = 0; i < RT_REASON_SESSIONS; i++) {
		if (rt_load(&rt_reason_sessions[i]) == s)
			rt_store(&rt_reason_sessions[i], NULL);
		others |= rt_load(&rt_reason_sessions[i]) != NULL;
	}
	if (loads && !others)
		set_all(false);
}

void rt_reason_tick(void)
{
	if (loads && rt_imports_loads() != loads)
		set_all(true);
}

/* ---- numbers; in the application's threads ---- */

uint32_t rt_reason_number(const struct rt_session *s, uint64_t hash, const char *text, size_t len)
{
	uint64_t *known = s->fates->reasons.hash;
	uint32_t i = (uint32_t)(hash % RT_FATE_REASONS);

	for (unsigned n = 0; n < PROBES; n++, i = (i + 1) % RT_FATE_REASONS) {
		uint64_t there = rt_load(&known[i]);

		if (!there && rt_cas(&known[i], &there, hash)) {
			/* Zeros follow: readers copy it with a limit. */
			memcpy(s->shm.fate_reasons[i], text, RTE_MIN(len, RT_NAME_LEN - 1u));
			return i + 1;
		}
		if (there == hash)
			return i + 1;
	}
	return RT_FATE_OTHERS;
}
