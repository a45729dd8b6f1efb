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
#include "flight.h"

#define FLOWS_MAX  16384
#define FLAGS_SENT 2 /* outbound, of epb_flags */

static unsigned slice_of(const struct incident *i, uint64_t ns)
{
	double at = (double)(ns - i->from_ns) / (double)(i->to_ns - i->from_ns + 1);

	return at < 0 ? 0 : at < 1 ? (unsigned)(at * INCIDENT_SLICES) : INCIDENT_SLICES - 1;
}

static void count(
	struct incident *i, const struct block *b, const struct rt_record *r, const uint8_t *data)
{
	struct rt_options o;
	struct headers h;
	bool sent;

	rt_record_options(b->data, r, &o);
	sent = (o.flags & RT_FLAGS_DIRECTION) == FLAGS_SENT;
	if (r->if_index < i->r.file_ifs) {
		i->if_packets[r->if_index]++;
		i->if_lost[r->if_index] += o.dropcount;
	}
	i->counted++;
	i->lost += o.dropcount;
	i->slices[sent][slice_of(i, r->ns)]++;
	if (!i->first_ns)
		i->first_ns = r->ns;
	i->last_ns = r->ns;
	if (!i->flows)
		return;
	headers_read(&h, LINKTYPE_ETHERNET, data, r->cap_len);
	flows_add(i->flows, &h, r->orig_len, sent);
}

/* The application can write to its packets until they are in the file: what is wrong there ends the
 * counting. */
static int count_file(struct incident *i, int fd)
{
	const uint8_t *data;
	struct blocks b;
	struct block block;
	struct rt_record r;
	int ret = blocks_open(&b, fd);

	while (!ret && (ret = blocks_next(&b, &block)) > 0) {
		ret = rt_load(&i->f->abort_writers) ? -ECANCELED : 0;
		if (ret || block.type != RT_EPB_TYPE)
			continue;
		ret = block_packet(&block, &r, &data);
		if (!ret)
			count(i, &block, &r, data);
	}
	blocks_close(&b);
	return ret;
}

static int append(struct incident *i, int fd, const void *data, size_t len)
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

	for (unsigned k = 0; k < i->r.file_ifs && !ret; k++) {
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

		ret = n < 0 ? (int)n : append(i, fd, buf, (size_t)n);
	}
	return ret;
}

int survey(struct incident *i)
{
	int fd = open(i->r.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), ret;

	if (fd < 0)
		return -errno;
	i->if_packets = calloc(i->r.file_ifs + 1, sizeof(*i->if_packets));
	i->if_lost = calloc(i->r.file_ifs + 1, sizeof(*i->if_lost));
	i->flows = flows_new(FLOWS_MAX); /* NULL: the report has none */
	ret = i->if_packets && i->if_lost ? count_file(i, fd) : -ENOMEM;
	/* After an error the disk may be full. */
	if (!ret && !i->error)
		ret = put_statistics(i, fd);
	close(fd);
	return ret;
}
