/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "common/array.h"
#include "flow_rows.h"
#include "packet.h"
#include "rows.h"
#include "spill.h"

#define HOUR_NS INT64_C(3600000000000)
#define CUT     (1u << 20) /* bytes between two cuts, at least */
#define NO_HOUR INT64_MIN
#define LATER   INT64_C(60000000000) /* behind the end of a part */

static int begin(struct rt_archive **out, unsigned flags)
{
	struct rt_archive *a = calloc(1, sizeof(*a));

	*out = a;
	if (!a)
		return -ENOMEM;
	a->flags = flags;
	a->packets = flags & RT_ARCHIVE_BY_FLOW ? &sorted_kind : &packets_kind;
	if (flags & RT_ARCHIVE_BY_FLOW && sorted_open(&a->sorted))
		return -ENOMEM;
	a->pool = pool_new(batch_size(a->packets));
	a->flow_pool = pool_new(batch_size(&flows_kind));
	a->flows = calloc(1, sizeof(*a->flows));
	if (!a->pool || !a->flow_pool || !a->flows)
		return -ENOMEM;
	return flags & RT_ARCHIVE_NO_FLOWS ? 0 : flows_open(a->flows);
}

/* The file must begin with a section; else it has no parts. */
static int check(struct rt_archive *a)
{
	const uint8_t *p;
	ssize_t n = window_peek(&a->walk.b.w, 0, 4, &p);

	if (n < 0)
		return (int)n;
	if (n >= 4 && !memcmp(p, "\n\r\r\n", 4))
		return 0;
	strcpy(a->walk.b.torn, "byte 0: this is not a pcapng file");
	return -EBADMSG;
}

int rt_archive_open(struct rt_archive **out, int fd, unsigned flags)
{
	int ret = begin(out, flags);

	if (!ret)
		ret = window_open(&(*out)->walk.b.w, fd);
	return ret ? ret : check(*out);
}

int rt_archive_memory(struct rt_archive **out, const void *data, size_t len, unsigned flags)
{
	int ret = begin(out, flags);

	if (ret)
		return ret;
	window_memory(&(*out)->walk.b.w, data, len);
	return check(*out);
}

static void end_part(struct part *p)
{
	free(p->header);
	free(p->cuts);
	losses_clear(&p->losses);
	clock_clear(&p->clock);
	*p = (struct part){.hour = NO_HOUR};
}

static void destroy(struct rt_archive *a)
{
	end_part(&a->part);
	walk_close(&a->walk);
	if (a->flows && !(a->flags & RT_ARCHIVE_NO_FLOWS))
		flows_close(a->flows);
	free(a->flows);
	sorted_close(&a->sorted);
	pool_close(a->pool);
	pool_close(a->flow_pool);
	free(a);
}

void rt_archive_close(struct rt_archive *a)
{
	if (!a)
		return;
	a->closed = true;
	a->state = STATE_END; /* the file may be closed: nothing more is read */
	if (!a->streams)
		destroy(a);
}

const char *rt_archive_torn(const struct rt_archive *a)
{
	return a->walk.b.torn[0] ? a->walk.b.torn : NULL;
}

const char *rt_archive_version(void)
{
	return RINGTAP_VERSION;
}

void rt_archive_free(void *p)
{
	free(p);
}

/* ---- parts ---- */

int rt_archive_part_next(struct rt_archive *a)
{
	struct part *p = &a->part;

	if (a->broken)
		return a->broken;
	if (a->state == STATE_PACKETS || a->flows_opened)
		return -EBUSY;
	if (a->state == STATE_END)
		return 0;
	end_part(p);
	if (a->state == STATE_READ) {
		p->header = malloc(a->walk.header_len ? a->walk.header_len : 1);
		if (!p->header)
			return -ENOMEM;
		memcpy(p->header, a->walk.header, a->walk.header_len);
		p->header_len = a->walk.header_len;
		p->begin = p->last_cut = a->pending.offset;
		walk_part(&a->walk);
		if (!(a->flags & RT_ARCHIVE_NO_FLOWS))
			flows_clear(a->flows);
	}
	a->sorted.flows = a->sorted.rows && !(a->flags & RT_ARCHIVE_NO_FLOWS) ? a->flows : NULL;
	a->state = STATE_PACKETS;
	return 1;
}

const void *rt_archive_part_header(const struct rt_archive *a, size_t *len)
{
	*len = a->part.header_len;
	return a->part.header;
}

void rt_archive_part_range(const struct rt_archive *a, uint64_t *range_begin, uint64_t *end)
{
	*range_begin = a->part.begin;
	*end = a->state == STATE_PACKETS ? a->walk.b.next : a->part.end;
}

const uint64_t *rt_archive_part_cuts(const struct rt_archive *a, size_t *count)
{
	*count = a->part.cut_count;
	return a->part.cuts;
}

/* A block begins here: frames of a compressed part can. */
static int cut(struct part *p, uint64_t offset)
{
	uint64_t *more;

	if (offset - p->last_cut < CUT)
		return 0;
	more = rt_array_add(p->cuts, p->cut_count);
	if (!more)
		return -ENOMEM;
	*more = p->last_cut = offset;
	return 0;
}

/* ---- packets ---- */

static int64_t hour_of(int64_t ns)
{
	return ns / HOUR_NS - (ns % HOUR_NS < 0);
}

static void count_packet(struct part *p, int64_t ns)
{
	if (!p->packets || ns < p->first_ns)
		p->first_ns = ns;
	if (!p->packets || ns > p->last_ns)
		p->last_ns = ns;
	p->packets++;
	p->late |= hour_of(ns) < p->hour;
}

static void packet_loss(struct rt_archive *a, const struct block *f)
{
	if (f->dropcount)
		losses_add(&a->part.losses, &(struct loss){.ns = f->ns,
						    .packets = f->dropcount,
						    .interface = a->walk.base + f->local,
						    .queue = f->queue,
						    .direction = f->direction,
						    .reason = LOSS_CAPTURE});
}

/* Columns of the capture and its time stamps: all but those of packet_read(). */
static void read_found(const struct rt_archive *a, const struct block *f, struct row *r)
{
	memset(r, 0, ROW_TUNNEL);
	r->has = HAS(COL_TIME) | HAS(COL_INTERFACE) | HAS(COL_LENGTH) | HAS(COL_CAPTURED) |
		 HAS(COL_FILE_OFFSET);
	r->time_ns = f->ns;
	r->interface = (uint16_t)(a->walk.base + f->local);
	r->length = f->length;
	r->captured = f->captured;
	r->application = walk_iface(&a->walk, f->local)->application;
	r->file_offset = (int64_t)(f->offset - a->part.begin + a->part.header_len);
	if (f->queue <= UINT16_MAX) {
		r->queue = (uint16_t)f->queue;
		r->has |= HAS(COL_QUEUE);
	}
	if (f->direction) {
		r->direction = f->direction - 1;
		r->has |= HAS(COL_DIRECTION);
	}
	if (f->has_hash) {
		r->rss_hash = f->hash;
		r->has |= HAS(COL_RSS_HASH);
	}
	if (f->has_id) {
		r->packet_id = (int64_t)f->id;
		r->has |= HAS(COL_PACKET_ID);
	}
}

/* Latencies and fates need the order of the file: from the first id on, packets go to the flows in
 * this order. */
static int offer(struct rt_archive *a, const struct row *r)
{
	struct flows *later = a->sorted.flows;
	int ret = 0;

	/* A packet sent with an id was received, even if its headers have changed. */
	if (!(r->has & HAS(COL_FLOW_ID)) && (!(r->has & HAS(COL_PACKET_ID)) || !r->direction))
		return 0;
	if (later && !(r->has & HAS(COL_PACKET_ID)))
		return 0;
	if (later)
		ret = sorted_settle(&a->sorted);
	return ret ? ret : flows_offer(a->flows, r);
}

static void put_row(struct rt_archive *a, struct batch *b, struct row *r)
{
	if (a->sorted.rows) {
		sorted_add(&a->sorted);
		return;
	}
	if (a->flags & RT_ARCHIVE_LEAN) {
		r->has &= ~(HAS(COL_TCP_SEQ) | HAS(COL_IP_ID));
		r->tcp_seq = r->ip_id = 0;
	}
	rows_put(b, r);
}

static int take_packet(struct rt_archive *a, const struct block *f, struct batch *b)
{
	struct row own, *r = a->sorted.rows ? sorted_next(&a->sorted) : &own;
	int ret = 0;

	if (a->part.hour == NO_HOUR)
		a->part.hour = hour_of(f->ns);
	walk_iface(&a->walk, f->local)->packets++;
	count_packet(&a->part, f->ns);
	packet_loss(a, f);
	read_found(a, f, r);
	packet_read(r, f->linktype, f->data, f->captured, f->length,
		!(a->flags & RT_ARCHIVE_NO_DIGEST));
	if (!(a->flags & RT_ARCHIVE_NO_FLOWS))
		ret = offer(a, r);
	put_row(a, b, r);
	return ret;
}

/* Counters are those since the capture began, in all its files. Only of a file that has all packets
 * until then is it known what was lost while it was written. */
static void take_statistics(struct rt_archive *a, const struct block *f)
{
	struct iface *i = walk_iface(&a->walk, f->local);
	const struct statistics *now = &i->last;
	bool first = a->walk.before.time_ns == NO_COUNT, all = now->delivered == i->all;
	uint64_t os = first ? 0 : a->walk.before.os_dropped,
		 nic = first ? 0 : a->walk.before.dropped;
	struct loss l = {.ns = f->ns,
		.interface = a->walk.base + f->local,
		.queue = NO_QUEUE,
		.reason = LOSS_CAPTURE};

	if (first && !all) {
		os = now->os_dropped;
		if (os != NO_COUNT)
			i->gaps = os;
	}
	/* Interfaces with packets are in the list. */
	if (os < i->gaps)
		os = i->gaps;
	if (now->os_dropped != NO_COUNT && os != NO_COUNT && now->os_dropped > os) {
		l.packets = now->os_dropped - os;
		losses_add(&a->part.losses, &l);
		i->gaps += l.packets;
	}
	l.reason = LOSS_NIC;
	if (first && !all)
		nic = now->dropped;
	if (now->dropped != NO_COUNT && nic != NO_COUNT && now->dropped > nic) {
		l.packets = now->dropped - nic;
		losses_add(&a->part.losses, &l);
	}
}

static bool begins_part(const struct rt_archive *a, const struct block *f)
{
	return a->part.hour != NO_HOUR && hour_of(f->ns) > a->part.hour;
}

static int take_found(
	struct rt_archive *a, enum block_kind kind, const struct block *f, struct batch *b)
{
	int ret = cut(&a->part, f->offset);

	if (ret)
		return ret;
	switch (kind) {
	case BLOCK_PACKET: return take_packet(a, f, b);
	case BLOCK_STATISTICS:
		take_statistics(a, f);
		clock_add(&a->part.clock, &walk_iface(&a->walk, f->local)->report, f->ns);
		return 0;
	case BLOCK_INTERFACE:
		/* All say the same at the beginning of a file. */
		if (f->local == 0)
			clock_add(&a->part.clock, &walk_iface(&a->walk, 0)->clock, 0);
		return 0;
	case BLOCK_FATES:
		if (a->flags & RT_ARCHIVE_NO_FLOWS)
			return 0;
		ret = flows_settle(a->flows);
		flows_fates(a->flows, &a->walk);
		return ret;
	default: return 0;
	}
}

static bool is_full(const struct rt_archive *a, const struct batch *b)
{
	return (a->sorted.rows ? a->sorted.count : b->rows) == a->packets->rows;
}

/* Fills a batch. 0, also at the end of the part; -errno. */
static int fill(struct rt_archive *a, struct batch *b)
{
	int ret = 0;

	if (a->has_pending) {
		a->has_pending = false;
		ret = take_packet(a, &a->pending, b);
	}
	while (!ret && !is_full(a, b) && a->state == STATE_PACKETS) {
		struct block f;
		int kind = walk_next(&a->walk, &f);

		if (kind < 0)
			return kind;
		if (kind == BLOCK_END) {
			a->part.end = a->walk.b.next;
			a->state = STATE_END;
		} else if (kind == BLOCK_PACKET && begins_part(a, &f)) {
			a->pending = f;
			a->has_pending = true;
			a->part.end = f.offset;
			a->state = STATE_READ;
		} else {
			ret = take_found(a, (enum block_kind)kind, &f, b);
		}
	}
	if (!ret && a->sorted.rows)
		ret = sorted_put(&a->sorted, b, a->flags & RT_ARCHIVE_LEAN);
	if (!ret && a->state != STATE_PACKETS && !(a->flags & RT_ARCHIVE_NO_FLOWS))
		ret = flows_settle(a->flows);
	return ret;
}

/* ---- behind the part ---- */

/* In the part's own file, from the packet on that the next part begins with. */
static int later_here(struct rt_archive *a, int64_t until_ns)
{
	struct walk w;
	int ret = walk_fork(&w, &a->walk);

	if (!ret) {
		w.b.next = a->part.end;
		ret = flows_later(a->flows, &w, until_ns);
	}
	walk_close(&w);
	return ret;
}

static int later_there(struct rt_archive *a, int fd, int64_t until_ns)
{
	struct walk w = {0};
	int ret = window_open(&w.b.w, fd);

	if (!ret)
		ret = flows_later(a->flows, &w, until_ns);
	walk_close(&w);
	return ret;
}

int rt_archive_part_later(struct rt_archive *a, int fd)
{
	int64_t until = a->part.last_ns > INT64_MAX - LATER ? INT64_MAX : a->part.last_ns + LATER;
	struct fates *now;
	uint64_t learned;
	bool ended;
	int ret;

	if (a->broken)
		return a->broken;
	if (a->state != STATE_READ && a->state != STATE_END)
		return -EBUSY;
	if (a->flags & RT_ARCHIVE_NO_FLOWS || !a->flows->fates.present || a->flows->fates.ended ||
		!a->flows->ids.used)
		return 0;
	now = &a->flows->fates;
	learned = a->flows->learned;
	ended = now->ended;
	ret = a->state == STATE_READ ? later_here(a, until) : 0;
	if (!ret && fd >= 0 && !a->walk.b.torn[0])
		ret = later_there(a, fd, until);
	return ret < 0 ? ret : a->flows->learned != learned || now->ended != ended;
}

/* ---- streams ---- */

static const char *last_error(struct ArrowArrayStream *s)
{
	struct rt_archive *a = s->private_data;

	return a->error[0] ? a->error : NULL;
}

static int failed(struct rt_archive *a, const char *what, int ret)
{
	snprintf(a->error, sizeof(a->error), "%s: %s", what, strerror(-ret));
	return -ret;
}

/* An error of reading rows stays. */
static int broken(struct rt_archive *a, const char *what, int ret)
{
	a->broken = ret;
	return failed(a, what, ret);
}

static int packets_schema(struct ArrowArrayStream *s, struct ArrowSchema *out)
{
	int ret = batch_schema(&packets_kind, out);

	return ret ? failed(s->private_data, "schema", ret) : 0;
}

/* The rows of a batch, none at the end, or an error. b may be NULL. */
static int hand_out(
	struct rt_archive *a, struct batch *b, struct ArrowArray *out, const char *what, int ret)
{
	if (!ret && b->rows) {
		batch_export(b, out);
		return 0;
	}
	batch_free(b);
	return ret ? broken(a, what, ret) : 0;
}

static int packets_next(struct ArrowArrayStream *s, struct ArrowArray *out)
{
	struct rt_archive *a = s->private_data;
	struct batch *b;
	int ret;

	out->release = NULL;
	if (a->broken)
		return -a->broken;
	if (a->state != STATE_PACKETS)
		return 0;
	b = batch_new(a->packets, a->pool);
	ret = b ? fill(a, b) : -ENOMEM;
	return hand_out(a, b, out, "packets cannot be read", ret);
}

static void end_stream(struct ArrowArrayStream *s)
{
	struct rt_archive *a = s->private_data;

	s->release = NULL;
	if (!--a->streams && a->closed)
		destroy(a);
}

int rt_archive_part_packets(struct rt_archive *a, struct ArrowArrayStream *out)
{
	if (a->state != STATE_PACKETS || a->part.packets)
		return -EBUSY;
	*out = (struct ArrowArrayStream){.get_schema = packets_schema,
		.get_next = packets_next,
		.get_last_error = last_error,
		.release = end_stream,
		.private_data = a};
	a->streams++;
	return 0;
}

static int flows_schema(struct ArrowArrayStream *s, struct ArrowSchema *out)
{
	int ret = batch_schema(&flows_kind, out);

	return ret ? failed(s->private_data, "schema", ret) : 0;
}

static int fill_flows(struct rt_archive *a, struct batch *b)
{
	int ret = a->flow_reader ? 0 : flow_reader_open(&a->flow_reader, a->flows);

	while (!ret && b->rows < flows_kind.rows) {
		const struct flow *f;

		ret = flow_reader_next(a->flow_reader, &f);
		if (ret <= 0)
			return ret;
		flow_rows_put(b, f, &a->flows->fates);
		ret = 0;
	}
	return ret;
}

static int flows_next(struct ArrowArrayStream *s, struct ArrowArray *out)
{
	struct rt_archive *a = s->private_data;
	struct batch *b;
	int ret;

	out->release = NULL;
	if (a->broken)
		return -a->broken;
	b = batch_new(&flows_kind, a->flow_pool);
	ret = b ? fill_flows(a, b) : -ENOMEM;
	return hand_out(a, b, out, "flows cannot be read", ret);
}

static void flows_release(struct ArrowArrayStream *s)
{
	struct rt_archive *a = s->private_data;

	flow_reader_close(a->flow_reader);
	a->flow_reader = NULL;
	a->flows_opened = false;
	end_stream(s);
}

int rt_archive_part_flows(struct rt_archive *a, struct ArrowArrayStream *out)
{
	if (a->broken)
		return a->broken;
	if (a->state == STATE_PACKETS || a->flows_opened)
		return -EBUSY;
	if (a->flags & RT_ARCHIVE_NO_FLOWS)
		return -EINVAL;
	*out = (struct ArrowArrayStream){.get_schema = flows_schema,
		.get_next = flows_next,
		.get_last_error = last_error,
		.release = flows_release,
		.private_data = a};
	a->flows_opened = true;
	a->streams++;
	return 0;
}
