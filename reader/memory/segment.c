/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/fail.h"
#include "segment.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static int bad(char *err, size_t errlen, const char *what)
{
	return rt_fail(-EBADMSG, err, errlen, "the probe's memory is not usable: %s", what);
}

static int cannot_map(int error, char *err, size_t errlen)
{
	return rt_fail(-error, err, errlen, "cannot map the rings: %s", strerror(error));
}

#define HOLES_MAX (256ll << 20) /* bytes */

/* F_GET_SEALS first: the kernel alone answers it, for every kind of descriptor, while fstatfs()
 * waits for file systems that may not answer. */
static int64_t sealed_size(int fd, int64_t holes_max)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st))
		return -1;
	/* The seals allow holes. The kernel fills one of tmpfs; one of hugetlbfs is SIGBUS where no
	 * huge page is free. */
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return -1;
	/* Reading a hole allocates memory. */
	if (st.st_size - (int64_t)st.st_blocks * 512 > holes_max)
		return -1;
	return st.st_size;
}

int64_t rt_sealed_size(int fd)
{
	return sealed_size(fd, HOLES_MAX);
}

bool rt_table_fits(
	uint64_t segment_size, uint64_t offset, uint64_t count, uint64_t each, uint64_t align)
{
	return offset >= RT_SEG_HEADER && offset % align == 0 && offset <= segment_size &&
	       count <= (segment_size - offset) / each;
}

bool rt_chunks_valid(uint64_t size, uint64_t count, uint64_t order_count, uint64_t shares)
{
	return size >= RT_CHUNK_MIN && size <= RT_CHUNK_MAX && !(size & (size - 1)) &&
	       size % (uint64_t)sysconf(_SC_PAGESIZE) == 0 && count >= shares * RT_CHUNKS_OF_RING &&
	       count <= RT_BUFFER_MAX / size && order_count > count && order_count <= 2 * count &&
	       !(order_count & (order_count - 1));
}

/* The place of the history within an entry. */
static bool history_fits(const struct rt_seg_header *h)
{
	return !h->fate_history || (h->fate_snap >= RT_FATE_HISTORY &&
					   h->fate_history == h->fate_stride - RT_FATE_HISTORY);
}

bool rt_fates_valid(uint32_t bits, uint32_t stride, uint32_t snap)
{
	return bits && bits <= RT_FATE_BITS_MAX && snap <= RT_FATE_SNAP_MAX && snap % 64 == 0 &&
	       stride == sizeof(struct rt_seg_fate) + snap;
}

/* Without fates all of it is 0. */
static bool fates_fit(const struct rt_seg_header *h)
{
	if (!h->fate_offset)
		return !h->fate_pool_offset && !h->fate_reason_offset && !h->fate_bits &&
		       !h->fate_stride && !h->fate_snap && !h->fate_history;
	return history_fits(h) && rt_fates_valid(h->fate_bits, h->fate_stride, h->fate_snap) &&
	       rt_table_fits(
		       h->segment_size, h->fate_offset, 1ull << h->fate_bits, h->fate_stride, 64) &&
	       rt_table_fits(h->segment_size, h->fate_pool_offset, RT_FATE_POOLS,
		       sizeof(struct rt_seg_fate_pool), 64) &&
	       (!h->fate_reason_offset || rt_table_fits(h->segment_size, h->fate_reason_offset,
						  RT_FATE_REASONS, RT_NAME_LEN, 64));
}

static int check_header(const struct rt_seg_header *h, const int64_t sizes[RT_FD_COUNT],
	uint64_t more, char *err, size_t errlen)
{
	uint64_t rows = h->ring_count, end = h->segment_size;

	if (memcmp(h->magic, RT_SEG_MAGIC, sizeof(h->magic)))
		return bad(err, errlen, "it does not begin with the magic number");
	if (h->version != RT_SEG_VERSION || h->header_size != sizeof(*h))
		return rt_fail(-EPROTOTYPE, err, errlen,
			"the probe's segment is version %u, this reader's %d", h->version,
			RT_SEG_VERSION);
	if (h->segment_size > (uint64_t)sizes[RT_FD_SEGMENT])
		return bad(err, errlen, "the segment is shorter than it says");
	if (!h->ring_count || h->ring_count > RT_MAX_RINGS || !h->share_count ||
		h->share_count > h->ring_count || h->if_capacity > RT_MAX_IFS ||
		h->tap_capacity > RT_MAX_TAPS)
		return bad(err, errlen, "impossible numbers of rings or tables");
	if (!rt_chunks_valid(h->chunk_size, h->chunk_count, h->order_count, h->share_count))
		return bad(err, errlen, "impossible numbers or sizes of chunks");
	/* Later pieces have their place behind the first memory. */
	if (h->chunk_size * h->chunk_count > (uint64_t)sizes[RT_FD_DATA] + more ||
		(more && h->chunk_size * h->chunk_count < (uint64_t)sizes[RT_FD_DATA] + more) ||
		sizeof(struct rt_seg_tail) * h->ring_count > (uint64_t)sizes[RT_FD_TAILS])
		return bad(err, errlen, "the rings are shorter than it says");
	if (!rt_table_fits(end, h->clock_offset, 1, sizeof(struct rt_seg_clock), 64) ||
		!rt_table_fits(end, h->if_offset, h->if_capacity, sizeof(struct rt_seg_if), 8) ||
		!rt_table_fits(end, h->tap_offset, h->tap_capacity, sizeof(struct rt_seg_tap), 4) ||
		!rt_table_fits(
			end, h->ring_offset, h->ring_count, sizeof(struct rt_seg_ring), 64) ||
		!rt_table_fits(end, h->count_offset, rows * h->tap_capacity,
			sizeof(struct rt_seg_count), 64) ||
		!rt_table_fits(
			end, h->orphan_offset, h->tap_capacity, sizeof(struct rt_seg_count), 64) ||
		!rt_table_fits(end, h->order_offset, (uint64_t)h->ring_count * h->order_count,
			sizeof(uint32_t), 64) ||
		!fates_fit(h))
		return bad(err, errlen, "a table lies outside of it");
	return 0;
}

/* Huge pages need an address that is aligned as they are. What is to come is mapped within room.
 * NULL: see errno. */
static const void *map_aligned(int fd, size_t size, size_t room, void **base, size_t *span)
{
	const size_t align = RT_CHUNK_MAX;
	void *p;

	*span = room + align;
	p = mmap(NULL, *span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	*base = p;
	p = mmap((void *)(((uintptr_t)p + align - 1) / align * align), size, PROT_READ,
		MAP_SHARED | MAP_FIXED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void rt_segment_hold(const struct rt_segment *s, uint64_t at, uint64_t bytes)
{
	(void)madvise((void *)(uintptr_t)(s->data + at), bytes, MADV_POPULATE_READ);
	(void)mlock(s->data + at, bytes);
}

static int map_data(struct rt_segment *s, int fd, uint64_t more)
{
	size_t all = s->h.chunk_size * s->h.chunk_count;

	s->data = map_aligned(fd, all - more, all, &s->data_base, &s->data_span);
	if (!s->data)
		return -errno;
	rt_segment_hold(s, 0, all - more);
	return 0;
}

int rt_segment_map_more(struct rt_segment *s, int fd, uint64_t at, uint64_t bytes)
{
	void *p = mmap(
		(void *)(uintptr_t)(s->data + at), bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);

	return p == MAP_FAILED ? -errno : 0;
}

static int map_all(
	struct rt_segment *s, const int fds[RT_FD_COUNT], struct rt_seg_tail *tails, uint64_t more)
{
	const uint8_t *base = (const uint8_t *)s->live;

	s->clock = (const void *)(base + s->h.clock_offset);
	s->ifs = (const void *)(base + s->h.if_offset);
	s->taps = (const void *)(base + s->h.tap_offset);
	s->rings = (const void *)(base + s->h.ring_offset);
	s->counts = (const void *)(base + s->h.count_offset);
	s->orphans = (const void *)(base + s->h.orphan_offset);
	s->orders = (const void *)(base + s->h.order_offset);
	s->tails = tails;
	(void)mlock2(s->live, s->h.segment_size, MLOCK_ONFAULT); /* it is sparse */
	(void)mlock(tails, sizeof(*tails) * s->h.ring_count);
	return map_data(s, fds[RT_FD_DATA], more);
}

int rt_segment_map(struct rt_segment *s, const int fds[RT_FD_COUNT], struct rt_seg_tail *tails,
	uint64_t more, char *err, size_t errlen)
{
	int64_t sizes[RT_FD_COUNT];
	void *p;
	int ret;

	memset(s, 0, sizeof(*s));
	for (int i = 0; i < RT_FD_COUNT; i++) {
		sizes[i] = sealed_size(fds[i], INT64_MAX); /* this process has made it */
		if (sizes[i] < 0)
			return bad(err, errlen, "it is not sealed memory of ordinary pages");
	}
	if (sizes[RT_FD_SEGMENT] < (int64_t)sizeof(s->h))
		return bad(err, errlen, "it is too short");
	/* Map the header first: its description of the rest is checked on a private copy. */
	p = mmap(NULL, sizeof(s->h), PROT_READ, MAP_SHARED, fds[RT_FD_SEGMENT], 0);
	if (p == MAP_FAILED)
		return cannot_map(errno, err, errlen);
	memcpy(&s->h, p, sizeof(s->h));
	munmap(p, sizeof(s->h));
	ret = check_header(&s->h, sizes, more, err, errlen);
	if (ret)
		return ret;
	s->live = map_aligned(fds[RT_FD_SEGMENT], s->h.segment_size, s->h.segment_size,
		&s->live_base, &s->live_span);
	ret = s->live ? map_all(s, fds, tails, more) : -errno;
	if (ret) {
		rt_segment_unmap(s);
		return cannot_map(-ret, err, errlen);
	}
	return 0;
}

void rt_segment_unmap(struct rt_segment *s)
{
	if (s->data_base)
		munmap(s->data_base, s->data_span);
	if (s->live_base)
		munmap(s->live_base, s->live_span);
	memset(s, 0, sizeof(*s));
}

static uint32_t at_most(uint32_t v, uint32_t max)
{
	return v < max ? v : max;
}

uint32_t rt_segment_if_count(const struct rt_segment *s)
{
	/* Pairs with the release in publish_counts(): entries below it are complete. */
	return at_most(rt_load_acquire(&s->live->if_count), s->h.if_capacity);
}

uint32_t rt_segment_tap_count(const struct rt_segment *s)
{
	return at_most(rt_load_acquire(&s->live->tap_count), s->h.tap_capacity);
}

uint32_t rt_segment_ring_next(const struct rt_segment *s, uint32_t from)
{
	for (; from < s->h.ring_count; from = (from / 64 + 1) * 64) {
		/* Pairs with the release in rt_session_begin_ring(). */
		uint64_t bits = rt_load_acquire(&s->live->used[from / 64]) >> from % 64;

		from += bits ? (uint32_t)__builtin_ctzll(bits) : 0;
		if (bits)
			break;
	}
	return at_most(from, s->h.ring_count);
}

const struct rt_seg_count *rt_segment_row(const struct rt_segment *s, uint32_t *from)
{
	uint32_t n = s->h.ring_count, ring = *from;

	if (ring > n)
		return NULL;
	ring = rt_segment_ring_next(s, ring);
	*from = ring + 1;
	return ring < n ? s->counts + (size_t)ring * s->h.tap_capacity : s->orphans;
}
