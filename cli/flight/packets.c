/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of an incident: what the window holds goes to the file, which is whole whatever
 * happens. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "packet/blocks.h"
#include "common/atomics.h"
#include "common/foreign.h"
#include "fates.h"
#include "file_counts.h"
#include "flight.h"
#include "event_packet.h"
#include "packets.h"

#define NARROWED_MAX 8 /* times that a file is begun again */
#define EVENT_END_NS 100000000u
#define RUNS_MAX     64
#define TIMEOUT_MS   100
#define COMMENT      1 /* code of opt_comment, pcapng section 3.5 */
#define COMMENT_MAX  1100
#define BLOCK_MAX    (RT_CHUNK_MAX + COMMENT_MAX)

const struct output_options packets_options = {
	.compress = COMPRESS_NONE, .threads = 1, .no_direct = true};

/* Whether the comment belongs to this packet: the one that was the event, else the first one at or
 * after it. */
static bool is_event(const struct incident *i, const struct ringtap_packet *p)
{
	if (!i->event.packet.direction || p->ns != i->event.to_ns)
		return p->ns >= i->event.to_ns;
	return event_is_packet(&i->event, i->file.cap, p);
}

/* Packets of a run before the one that has the comment; UINT64_MAX: it is not in this run. */
static uint64_t find_mark(struct incident *i, const struct ringtap_run *run)
{
	struct ringtap_packets *it = i->file.out.walk;
	const struct ringtap_packet *p;
	uint64_t n = 0;

	/* Most runs need no look at their packets. */
	if (i->marked || run->last_ns < i->event.to_ns)
		return UINT64_MAX;
	ringtap_packets_start(it, run);
	if (i->event.packet.direction)
		ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
	while ((p = ringtap_packet_next(it)) && !is_event(i, p))
		n++;
	i->marked = p;
	return p ? n : UINT64_MAX;
}

/* Puts a comment into a packet's block, before the end of its options. Returns the new length; 0:
 * the block has no options to add it to. */
static uint32_t add_comment(uint8_t *block, uint32_t len, const char *text)
{
	uint32_t text_len = (uint32_t)strlen(text), padded = (text_len + 3) & ~3u, end, total;
	uint32_t head = COMMENT | text_len << 16;

	if (len < RT_EPB_MIN + 4)
		return 0;
	memcpy(&end, block + len - 8, sizeof(end));
	if (end)
		return 0;
	total = len + 4 + padded;
	memset(block + len - 8, 0, 4 + padded);
	memcpy(block + len - 8, &head, sizeof(head));
	memcpy(block + len - 4, text, text_len);
	memset(block + total - 8, 0, 4);
	memcpy(block + total - 4, &total, sizeof(total));
	memcpy(block + 4, &total, sizeof(total));
	return total;
}

/* Writes the first packet of a run with the comment. */
static int put_marked(struct incident *i, struct ringtap_run *rest)
{
	struct output *out = &i->file.out;
	struct ringtap_run one;
	uint8_t *block = malloc(BLOCK_MAX);
	const void *from;
	uint32_t len = 0;
	int ret;

	if (!block)
		return -ENOMEM;
	ringtap_run_take(rest, 1, UINT64_MAX, &one);
	from = one.bytes <= RT_CHUNK_MAX ? ringtap_run_pcapng(&one, block, BLOCK_MAX) : NULL;
	if (from && from != block)
		memcpy(block, from, one.bytes);
	if (from)
		len = add_comment(block, (uint32_t)one.bytes, i->comment);
	if (len) {
		out->packets++;
		ret = output_block(out, block, len);
	} else {
		ret = output_run(out, &one);
	}
	free(block);
	return ret;
}

static int put_run(struct incident *i, const struct ringtap_run *run)
{
	struct ringtap_run rest = *run, part;
	uint64_t mark = find_mark(i, run);
	int ret = 0;

	if (mark == UINT64_MAX)
		return output_run(&i->file.out, run);
	if (mark && ringtap_run_take(&rest, mark, UINT64_MAX, &part))
		ret = output_run(&i->file.out, &part);
	if (!ret)
		ret = put_marked(i, &rest);
	return !ret && rest.packets ? output_run(&i->file.out, &rest) : ret;
}

static int put_batch(struct incident *i, const struct ringtap_run *runs, int n)
{
	int ret = capture_file_interfaces(&i->file);

	for (int k = 0; k < n && !ret; k++)
		ret = put_run(i, &runs[k]);
	if (!ret)
		ret = output_push(&i->file.out);
	if (!ret && i->f->cfg->max_disk && i->file.out.bytes > i->f->cfg->max_disk)
		ret = -EFBIG;
	return ret;
}

static int write_window(struct incident *i)
{
	struct ringtap_run runs[RUNS_MAX];
	int n, ret = 0;

	while (!ret) {
		if (rt_load(&i->f->abort_writers))
			return -ECANCELED;
		n = ringtap_capture_next(i->file.cap, runs, RUNS_MAX, TIMEOUT_MS);
		if (n < 0)
			return n == -EPIPE ? 0 : n;
		ret = put_batch(i, runs, n);
		ringtap_capture_release(i->file.cap);
		if (!ret && (n || !i->first_byte_ns))
			ret = output_flush(&i->file.out);
		if (!i->first_byte_ns)
			i->first_byte_ns = now_ns(CLOCK_MONOTONIC);
	}
	return ret;
}

static int write_file(struct incident *i)
{
	int ret = output_open(&i->file.out, &packets_options, i->path, NULL), end;

	if (ret)
		return ret;
	ret = capture_file_start(&i->file);
	if (!ret)
		ret = capture_file_interfaces(&i->file);
	if (!ret)
		ret = flight_fates_begin_file(i);
	if (!ret)
		ret = write_window(i);
	end = output_close(&i->file.out, &i->bytes, &i->packets);
	return ret ? ret : end;
}

/* ---- when the disk is full */

static bool is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

/* Whether the file has packets from the event on. */
static bool has_event(const struct incident *i)
{
	struct blocks b = {0};
	struct block block;
	bool found = false;
	struct stat st;
	int kind, fd = rt_foreign_open(AT_FDCWD, i->path, O_NOFOLLOW, &st);

	if (fd < 0)
		return false;
	if (!window_open(&b.w, fd))
		while (!found && (kind = blocks_next(&b, &block)) > 0)
			found = kind == BLOCK_PACKET && (uint64_t)block.ns >= i->event.to_ns;
	blocks_close(&b);
	close(fd);
	return found;
}

/* A window that begins later. The one before holds its packets until it is closed. */
static int narrow(struct incident *i, uint64_t from_ns)
{
	struct ringtap_kept kept = {.size = sizeof(kept)};
	struct ringtap_capture *window;
	int ret = ringtap_capture_window(i->f->cap, from_ns, i->to_ns, &window);

	if (ret)
		return ret;
	ringtap_capture_kept(window, &kept);
	ringtap_capture_close(i->file.cap);
	i->file.cap = window;
	i->since_ns = kept.since_ns > from_ns ? kept.since_ns : from_ns;
	i->marked = false;
	return 0;
}

/* Packets come in order of time: what has no room is what comes last, and the event with it. Then
 * less of what was before the event is written, at last only its end: a latency may be long. */
static int write_around_event(struct incident *i)
{
	uint64_t before_ns = i->event.from_ns - i->from_ns;
	int full = write_file(i);

	for (int n = NARROWED_MAX, ret = full; n-- && is_full(ret) && !has_event(i);) {
		uint64_t from_ns = i->event.from_ns;

		before_ns /= 4;
		if (n)
			from_ns -= before_ns;
		else if (i->event.to_ns - from_ns > EVENT_END_NS)
			from_ns = i->event.to_ns - EVENT_END_NS;
		if (narrow(i, from_ns))
			break;
		ret = write_file(i);
	}
	return full;
}

static uint64_t thread_ns(void)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

void *packets_write(void *arg)
{
	struct incident *i = arg;
	const uint64_t one = 1;
	int ret;

	i->error = write_around_event(i);
	/* Space goes back at once: what follows reads the file. */
	ringtap_capture_close(i->file.cap);
	i->file.cap = NULL;
	i->written_ns = now_ns(CLOCK_MONOTONIC);
	i->write_cpu_ns = thread_ns();
	ret = file_count(i);
	i->error = i->error ? i->error : ret;
	i->count_cpu_ns = thread_ns() - i->write_cpu_ns;
	i->finished_ns = now_ns(CLOCK_MONOTONIC);
	/* Pairs with the acquire in incident_take_written(): all of the above. */
	rt_store_release(&i->done, 1);
	(void)!write(i->f->wake_fd, &one, sizeof(one));
	return NULL;
}
