/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of an incident: what the window holds goes to the file, which is whole whatever
 * happens. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "common/atomics.h"
#include "common/pcapng.h"
#include "flight.h"

#define RUNS_MAX    64
#define TIMEOUT_MS  100
#define COMMENT     1 /* code of opt_comment, pcapng section 3.5 */
#define COMMENT_MAX 1100
#define BLOCK_MAX   (RT_CHUNK_MAX + COMMENT_MAX)

/* Whether the comment belongs to this packet: the one that was the event, else the first one at or
 * after it. */
static bool is_event(const struct incident *i, const struct ringtap_packet *p)
{
	if (!i->event.packet.direction || p->ns != i->event.to_ns)
		return p->ns >= i->event.to_ns;
	return lookout_saw(&i->event, i->window, p);
}

static int grow(struct incident *i, unsigned count)
{
	uint64_t *packets, *lost;

	if (count <= i->if_count)
		return 0;
	packets = realloc(i->if_packets, count * sizeof(*packets));
	if (packets)
		i->if_packets = packets;
	lost = realloc(i->if_lost, count * sizeof(*lost));
	if (lost)
		i->if_lost = lost;
	if (!packets || !lost)
		return -ENOMEM;
	for (; i->if_count < count; i->if_count++)
		i->if_packets[i->if_count] = i->if_lost[i->if_count] = 0;
	return 0;
}

static unsigned slice_of(const struct incident *i, uint64_t ns)
{
	double at = (double)(ns - i->from_ns) / (double)(i->to_ns - i->from_ns + 1);

	return at < 0 ? 0 : at < 1 ? (unsigned)(at * INCIDENT_SLICES) : INCIDENT_SLICES - 1;
}

/* Counts a run. *mark becomes the number of packets before the first one that is not before the
 * trigger; UINT64_MAX: there is none. */
static int count(struct incident *i, const struct ringtap_run *run, uint64_t *mark)
{
	struct ringtap_packets *it = i->r.out.walk;
	const struct ringtap_packet *p;
	uint64_t n = 0;

	*mark = UINT64_MAX;
	ringtap_packets_start(it, run);
	ringtap_packets_fields(it, RINGTAP_FIELDS_ALL);
	while ((p = ringtap_packet_next(it))) {
		if (p->interface < i->if_count) {
			i->if_packets[p->interface]++;
			i->if_lost[p->interface] += p->dropcount;
		}
		i->lost += p->dropcount;
		i->slices[p->direction == RINGTAP_TX][slice_of(i, p->ns)]++;
		if (!i->first_ns)
			i->first_ns = p->ns;
		i->last_ns = p->ns;
		if (!i->marked && is_event(i, p)) {
			i->marked = true;
			*mark = n;
		}
		n++;
	}
	return ringtap_packets_error(it);
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
	struct output *out = &i->r.out;
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
	uint64_t mark;
	int ret = count(i, run, &mark);

	if (ret || mark == UINT64_MAX)
		return ret ? ret : output_run(&i->r.out, run);
	if (mark && ringtap_run_take(&rest, mark, UINT64_MAX, &part))
		ret = output_run(&i->r.out, &part);
	if (!ret)
		ret = put_marked(i, &rest);
	return !ret && rest.packets ? output_run(&i->r.out, &rest) : ret;
}

static int put_batch(struct incident *i, const struct ringtap_run *runs, int n)
{
	int ret = file_interfaces(&i->r);

	if (!ret)
		ret = grow(i, ringtap_capture_interface_count(i->window));
	for (int k = 0; k < n && !ret; k++)
		ret = put_run(i, &runs[k]);
	if (!ret)
		ret = output_push(&i->r.out);
	if (!ret && i->f->cfg->max_disk && i->r.out.bytes > i->f->cfg->max_disk)
		ret = -EFBIG;
	return ret;
}

/* Of the window alone: packets in the file, and those that are marked as lost before one of them.
 */
static int put_statistics(struct incident *i)
{
	int ret = 0;

	for (unsigned k = 0; k < i->r.file_ifs && k < i->if_count && !ret; k++) {
		struct rt_pcapng_isb isb = {.interface_id = k,
			.time_ns = i->to_ns,
			.starttime_ns = i->from_ns,
			.endtime_ns = i->to_ns,
			.ifrecv = RT_PCAPNG_NONE,
			.ifdrop = RT_PCAPNG_NONE,
			.filteraccept = i->if_packets[k] + i->if_lost[k],
			.osdrop = i->if_lost[k],
			.usrdeliv = i->if_packets[k],
			.comment = {"counts of this window"}};
		uint8_t buf[RT_PCAPNG_ISB_MAX];
		ssize_t n = rt_pcapng_isb(buf, sizeof(buf), &isb);

		ret = n < 0 ? (int)n : output_block(&i->r.out, buf, (size_t)n);
	}
	return ret;
}

static int write_window(struct incident *i)
{
	struct ringtap_run runs[RUNS_MAX];
	int n, ret = 0;

	while (!ret) {
		if (rt_load(&i->f->abort_writers))
			return -ECANCELED;
		n = ringtap_capture_next(i->window, runs, RUNS_MAX, TIMEOUT_MS);
		if (n < 0)
			return n == -EPIPE ? put_statistics(i) : n;
		ret = put_batch(i, runs, n);
		ringtap_capture_release(i->window);
		if (!ret && (n || !i->first_byte_ns))
			ret = output_flush(&i->r.out);
		if (!i->first_byte_ns)
			i->first_byte_ns = now_ns(CLOCK_MONOTONIC);
	}
	return ret;
}

void *packets_write(void *arg)
{
	struct incident *i = arg;
	const uint64_t one = 1;
	int ret;

	i->error = file_begin(&i->r);
	if (!i->error)
		i->error = write_window(i);
	if (i->r.out.sink) {
		ret = output_close(&i->r.out, &i->bytes, &i->packets);
		i->error = i->error ? i->error : ret;
	}
	/* Space goes back at once, not when the main thread comes to it. */
	ringtap_capture_close(i->window);
	i->window = NULL;
	i->finished_ns = now_ns(CLOCK_MONOTONIC);
	/* Pairs with the acquire in incidents_finish(): all of the above. */
	rt_store_release(&i->done, 1);
	(void)!write(i->f->wake_fd, &one, sizeof(one));
	return NULL;
}
