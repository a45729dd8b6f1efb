/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/array.h"
#include "readable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probe/hook/thread.h"

#define LOOK_MS  1000 /* the greatest age of the table while it is used */
#define REQUESTS 32   /* addresses that are in mappings without the needed permissions */

enum state {
	UNREADABLE,
	READABLE,
	UNKNOWN, /* not tried yet */
};

struct area {
	uintptr_t start, end;
	enum state state;
};

/* Sorted by address; constant once it is published. */
struct table {
	uint32_t count;
	struct area *areas;
};

static struct table *current; /* NULL: no table yet */
static uintptr_t requested;   /* set by a hook: an address that is not in the table; 0: none */
static uint32_t used;         /* whether hooks have needed the table */

/* Control thread. */
static struct table *old; /* perhaps still in use */
static struct rt_grace grace;
static uint64_t looked_ms;
static uintptr_t tried[REQUESTS]; /* addresses that hooks requested; the oldest are overwritten */
static uint32_t tried_next;

/* ---- hooks ---- */

static const struct area *find(const struct table *t, uintptr_t at)
{
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (at < t->areas[middle].start)
			high = middle;
		else if (at >= t->areas[middle].end)
			low = middle + 1;
		else
			return &t->areas[middle];
	}
	return NULL;
}

static bool is_readable(uintptr_t start, uint32_t bytes)
{
	/* Pairs with the release in publish(). */
	const struct table *t = rt_load_acquire(&current);
	const struct area *a = t ? find(t, start) : NULL;

	if (rt_unlikely(!rt_load(&used)))
		rt_store(&used, 1);
	if (a && a->state == READABLE && a->end - start >= bytes)
		return true;
	if ((!a || a->state == UNKNOWN) && !rt_load(&requested))
		rt_store(&requested, start);
	return false;
}

bool rt_readable_chain(const struct rte_mbuf *m, uint32_t bytes)
{
	for (unsigned segs = m->nb_segs; m && segs && bytes; m = m->next, segs--) {
		uint32_t n = RTE_MIN(m->data_len, bytes);

		if (n && (!rt_readable_own(m) || m->ol_flags & RTE_MBUF_F_EXTERNAL) &&
			!is_readable(rte_pktmbuf_mtod(m, uintptr_t), n))
			return false;
		bytes -= n;
	}
	return true;
}

/* ---- control thread ---- */

/* Reading a mapping of the kernel's own memory or of a file fails only without the permission.
 * Device memory has a file of /dev or /sys, or one without a folder. */
static enum state state_of(const char *permissions, const char *path)
{
	static const char *const plain[] = {"[", "/memfd:", "/anon_hugepage", "/SYSV", "/dev/zero",
		"/dev/shm/", "/dev/hugepages"};

	if (permissions[0] != 'r')
		return UNREADABLE;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (!strncmp(path, plain[i], strlen(plain[i])))
			return READABLE;
	}
	if (!path[0])
		return READABLE;
	return path[0] == '/' && strncmp(path, "/dev/", 5) && strncmp(path, "/sys/", 5) &&
			       strncmp(path, "/dmabuf", 7)
		       ? READABLE
		       : UNKNOWN;
}

/* Merges adjacent areas of one kind. False: no memory. */
static bool add(struct table *t, uintptr_t start, uintptr_t end, enum state state)
{
	struct area *last = t->count ? &t->areas[t->count - 1] : NULL;

	if (last && last->end == start && last->state == state && state != UNKNOWN) {
		last->end = end;
		return true;
	}
	last = rt_array_add(t->areas, t->count);
	if (last)
		*last = (struct area){start, end, state};
	return last;
}

static void free_table(struct table *t)
{
	if (t)
		free(t->areas);
	free(t);
}

/* proc_pid_maps(5). NULL: no memory, or no /proc. */
static struct table *read_maps(void)
{
	struct table *t = calloc(1, sizeof(*t));
	FILE *f = t ? fopen("/proc/self/maps", "re") : NULL;
	char *line = NULL;
	size_t room = 0;
	bool ok = f;

	while (ok && getline(&line, &room, f) > 0) {
		uintptr_t start, end;
		char permissions[5];
		int at = 0;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %n", &start, &end,
			    permissions, &at) < 3)
			continue;
		line[strcspn(line, "\n")] = 0;
		ok = add(t, start, end, state_of(permissions, line + at));
	}
	free(line);
	if (f)
		fclose(f);
	if (ok)
		return t;
	free_table(t);
	return NULL;
}

/* The kernel reads it, which gives an error instead of a signal. Errors other than EFAULT (EPERM
 * and ENOSYS of a seccomp filter) do not depend on the address. */
static enum state try_address(uintptr_t at)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {(void *)at, 1};

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1)
		return READABLE;
	return errno == EFAULT ? UNREADABLE : UNKNOWN;
}

/* One address that cannot be read makes the whole area unreadable. */
static void try_area(struct area *a)
{
	for (uint32_t i = 0; i < REQUESTS && a->state != UNREADABLE; i++) {
		enum state state = UNKNOWN;

		if (tried[i] >= a->start && tried[i] < a->end)
			state = try_address(tried[i]);
		if (state != UNKNOWN)
			a->state = state;
	}
}

static void try_requested(struct table *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		if (t->areas[i].state == UNKNOWN)
			try_area(&t->areas[i]);
	}
}

static bool same(const struct table *a, const struct table *b)
{
	if (!a || a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct area *x = &a->areas[i], *y = &b->areas[i];

		if (x->start != y->start || x->end != y->end || x->state != y->state)
			return false;
	}
	return true;
}

static void publish(struct table *t)
{
	old = current;
	rt_store_release(&current, t); /* pairs with the acquire in is_readable() */
	if (old)
		rt_grace_begin(&grace);
}

void rt_readable_look(uint64_t now_ms)
{
	uintptr_t at = rt_load(&requested);
	bool due = rt_load(&used) && now_ms - looked_ms >= LOOK_MS, fresh = true;
	struct table *t;

	if (old && !rt_grace_over(&grace))
		return;
	free_table(old);
	old = NULL;
	for (uint32_t i = 0; i < REQUESTS; i++)
		fresh &= tried[i] != at;
	/* Makes room for the next address: packets in no mapping would occupy the word forever. */
	if (at && !fresh)
		rt_store(&requested, 0);
	/* Do not search again and again for an address that is in no mapping, or for a missing
	 * /proc. */
	if (current ? !(at && fresh) && !due : looked_ms && now_ms - looked_ms < LOOK_MS)
		return;
	if (at && fresh)
		tried[tried_next++ % REQUESTS] = at;
	looked_ms = now_ms;
	t = read_maps();
	if (!t)
		return;
	try_requested(t);
	rt_store(&used, 0);
	if (same(current, t))
		free_table(t);
	else
		publish(t);
	rt_store(&requested, 0);
}

void rt_readable_forget(void)
{
	if (current && !old)
		publish(NULL);
	if (!old || !rt_grace_over(&grace))
		return;
	free_table(old);
	old = NULL;
	memset(tried, 0, sizeof(tried));
	looked_ms = 0;
	rt_store(&requested, 0);
}
