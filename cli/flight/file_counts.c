/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is in an incident's file: counts by interface and over time, and flows. It is read back when
 * the packets are written: until then they hold memory that the application needs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "packet/blocks.h"
#include "common/atomics.h"
#include "common/pcapng.h"
#include "file_counts.h"
#include "flight.h"
#include "packet_rows.h"
#include "passages.h"

#define FLOWS_MAX 16384

/* 1, 2 or 5 times a power of ten, so that the window has no more than INCIDENT_STEPS. */
static uint64_t step_of(uint64_t window_ns)
{
	uint64_t step = 1000;

	for (unsigned k = 0; window_ns / step >= INCIDENT_STEPS; k++)
		step = k % 3 == 1 ? step * 5 / 2 : step * 2;
	return step;
}

static void make_steps(struct incident *i)
{
	uint64_t window_ns = i->to_ns - i->from_ns + 1;

	i->step_ns = step_of(window_ns);
	i->step_count = (uint32_t)((window_ns + i->step_ns - 1) / i->step_ns);
	for (int k = 0; k < INCIDENT_CURVES; k++)
		i->steps[k] = calloc(i->step_count, sizeof(*i->steps[k]));
}

static void count_step(struct incident *i, int curve, uint64_t ns, uint64_t packets)
{
	uint64_t step = ns < i->from_ns ? 0 : (ns - i->from_ns) / i->step_ns;

	if (i->steps[curve])
		i->steps[curve][step < i->step_count ? step : i->step_count - 1] += packets;
}

static void count(struct incident *i, const struct block *b)
{
	bool sent = b->direction == DIRECTION_TX;
	uint64_t ns = (uint64_t)b->ns;
	struct headers h;

	if (b->local < i->file.interfaces) {
		i->if_packets[b->local]++;
		i->if_lost[b->local] += b->dropcount;
	}
	i->counted++;
	i->lost += b->dropcount;
	count_step(i, sent, ns, 1);
	if (b->dropcount)
		count_step(i, 2, ns, b->dropcount);
	if (!i->first_ns)
		i->first_ns = ns;
	i->last_ns = ns;
	headers_read(&h, b->linktype, b->data, b->captured);
	packet_rows_add(i->rows, b, &h);
	passages_add(i->passages, b, &h, i->counted);
	if (i->flows)
		flows_add(i->flows, &h, b->length, sent);
}

/* The application can write to its packets until they are in the file: what is wrong there ends the
 * counting. */
static int count_file(struct incident *i, int fd)
{
	struct blocks b = {0};
	struct block block;
	int ret = window_open(&b.w, fd), kind = 0;

	while (!ret && (kind = blocks_next(&b, &block)) > 0) {
		ret = rt_load(&i->f->abort_writers) ? -ECANCELED : 0;
		if (!ret && kind == BLOCK_PACKET)
			count(i, &block);
		else if (!ret && kind == BLOCK_INTERFACE)
			packet_rows_interface(i->rows, &block, b.swapped);
	}
	if (!ret)
		ret = kind < 0 ? kind : b.torn[0] ? -EBADMSG : 0;
	blocks_close(&b);
	return ret;
}

int file_append(struct incident *i, int fd, const void *data, size_t len)
{
	ssize_t n = pwrite(fd, data, len, (off_t)i->bytes);

	if (n == (ssize_t)len) {
		i->bytes += len;
		return 0;
	}
	/* The file ends with a whole block. */
	return n < 0 || ftruncate(fd, (off_t)i->bytes) ? -errno : -ENOSPC;
}

/* For the window alone: packets in the file, and those that are marked as lost before one of them.
 */
static int put_statistics(struct incident *i, int fd)
{
	int ret = 0;

	for (unsigned k = 0; k < i->file.interfaces && !ret; k++) {
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

		ret = n < 0 ? (int)n : file_append(i, fd, buf, (size_t)n);
	}
	return ret;
}

int file_count(struct incident *i)
{
	int fd = open(i->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), ret;

	if (fd < 0)
		return -errno;
	i->if_packets = calloc(i->file.interfaces + 1, sizeof(*i->if_packets));
	i->if_lost = calloc(i->file.interfaces + 1, sizeof(*i->if_lost));
	/* NULL: the reports have none. */
	i->flows = flows_new(FLOWS_MAX);
	i->rows = packet_rows_new(i->event.to_ns);
	i->passages = passages_new(i->from_ns, i->to_ns);
	make_steps(i);
	ret = i->if_packets && i->if_lost ? count_file(i, fd) : -ENOMEM;
	/* After an error the disk may be full. */
	if (!ret && !i->error)
		ret = put_statistics(i, fd);
	close(fd);
	return ret;
}
