/* SPDX-License-Identifier: BSD-3-Clause */
/* Intervals behind an incident's packets: docs/format.md, "Intervals in files". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pcapng.h"
#include "flight.h"
#include "intervals.h"

struct writing {
	const struct flight *f;
	const struct ringtap_snapshot *s;
	FILE *file;
	struct rt_intervals_head head;
	uint8_t *entries;         /* entries of this kind, head.count of them */
	uint32_t port, interface; /* looked for last */
};

static void flush(struct writing *w)
{
	uint32_t bytes = w->head.count * w->head.entry_bytes;

	if (!bytes)
		return;
	w->head.total = (uint32_t)sizeof(w->head) + bytes + 4;
	fwrite(&w->head, sizeof(w->head), 1, w->file);
	fwrite(w->entries, bytes, 1, w->file);
	fwrite(&w->head.total, sizeof(w->head.total), 1, w->file);
	w->head.count = 0;
}

static void begin(struct writing *w, enum rt_intervals_kind kind, size_t entry_bytes)
{
	flush(w);
	w->head.kind = (uint16_t)kind;
	w->head.entry_bytes = (uint16_t)entry_bytes;
}

static void put(struct writing *w, const void *entry)
{
	memcpy(w->entries + w->head.count * w->head.entry_bytes, entry, w->head.entry_bytes);
	if (++w->head.count == RT_INTERVALS_MOST)
		flush(w);
}

/* Interfaces of the file have the numbers of the capture. */
static uint32_t find_interface(const struct writing *w, uint32_t port)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	unsigned n = w->f->cap ? ringtap_capture_interface_count(w->f->cap) : 0;

	if (port >= w->s->port_count)
		return UINT32_MAX;
	while (n-- > 0)
		if (!ringtap_capture_interface(w->f->cap, n, &info) &&
			!strcmp(info.device, ringtap_snapshot_port(w->s, port)->device))
			return n;
	return UINT32_MAX;
}

static uint32_t interface_of(struct writing *w, uint32_t port)
{
	if (port != w->port)
		w->interface = find_interface(w, port);
	w->port = port;
	return w->interface;
}

static void put_threads(struct writing *w)
{
	begin(w, RT_INTERVALS_THREADS, sizeof(struct rt_intervals_thread));
	for (uint32_t k = 0; k < w->s->thread_count; k++) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(w->s, k);
		struct rt_intervals_thread e = {.thread = k, .lcore = t->lcore, .tid = t->tid};

		memcpy(e.name, t->name, sizeof(e.name));
		put(w, &e);
	}
}

static void put_interval(void *ctx, const struct ringtap_interval *v)
{
	struct writing *w = ctx;

	if (v->thread < w->s->thread_count)
		put(w, &(struct rt_intervals_entry){.ns_high = (uint32_t)(v->start_ns >> 32),
			       .ns_low = (uint32_t)v->start_ns,
			       .ns = v->ns,
			       .thread = v->thread,
			       .packets = v->packets,
			       .interface = interface_of(w, v->port),
			       .queue = v->queue,
			       .kind = (uint8_t)v->kind});
}

static void put_loss(void *ctx, const struct interval_loss *l)
{
	put(ctx, &(struct rt_intervals_loss){.from_high = (uint32_t)(l->from_ns >> 32),
			 .from_low = (uint32_t)l->from_ns,
			 .to_high = (uint32_t)(l->to_ns >> 32),
			 .to_low = (uint32_t)l->to_ns,
			 .count = l->count});
}

static int put_all(struct writing *w, const struct incident *i)
{
	w->entries = calloc(RT_INTERVALS_MOST, sizeof(struct rt_intervals_entry));
	if (!w->entries)
		return -ENOMEM;
	put_threads(w);
	begin(w, RT_INTERVALS_ENTRIES, sizeof(struct rt_intervals_entry));
	intervals_walk(i, 0, put_interval, w);
	begin(w, RT_INTERVALS_LOSSES, sizeof(struct rt_intervals_loss));
	intervals_missing(i, put_loss, w);
	flush(w);
	free(w->entries);
	return fflush(w->file) || ferror(w->file) ? -EIO : 0;
}

int intervals_write(struct incident *i, unsigned last)
{
	struct writing w = {.f = i->f,
		.port = UINT32_MAX,
		.interface = UINT32_MAX,
		.head = {.type = RT_PCAPNG_INTERVALS, .version = RT_INTERVALS_VERSION}};
	struct stat before, after;
	int ret;

	if (last >= i->f->history_count || !intervals_on(i->f->history[last]))
		return 0;
	w.s = i->f->history[last];
	w.file = fopen(i->path, "ae");
	if (!w.file)
		return -errno;
	ret = fstat(fileno(w.file), &before) ? -errno : put_all(&w, i);
	if (!ret && fstat(fileno(w.file), &after))
		ret = -errno;
	/* A block is whole, or not there. */
	if (ret && ftruncate(fileno(w.file), before.st_size))
		ret = -errno;
	fclose(w.file);
	if (!ret)
		i->bytes += (uint64_t)(after.st_size - before.st_size);
	return ret;
}
