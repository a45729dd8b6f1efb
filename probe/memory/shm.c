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

#include "common/fail.h"
#include "common/pages.h"
#include "common/proto.h"
#include "shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A truncation would kill a process that has mapped the memory with SIGBUS; a punched hole would
 * be filled, and charged, at the next access. The seal against new writers forbids holes. */
int rt_shm_seal(int fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno != EINVAL)
		return -errno; /* EINVAL: kernel before 5.1; the reader could then punch holes */
	return fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) ? -errno : 0;
}

static void *map_shared(int fd, uint64_t size, int protection)
{
	void *p = mmap(NULL, size, protection, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* ---- memory of the reader ---- */

static int refuse(char *err, int which, const char *why)
{
	static const char *const names[] = {"segment", "rings", "tails"};

	return rt_fail(-EINVAL, err, RT_TEXT_LEN, "cannot use the reader's memory for the %s: %s",
		names[which], why);
}

/* F_GET_SEALS first: the kernel alone answers it, for every kind of descriptor, while fstatfs()
 * waits for file systems that may not answer. */
static int check_kind(int fd, int which, char *err)
{
	struct statfs fs;

	if (fcntl(fd, F_GET_SEALS) < 0)
		return refuse(err, which, "it is not a memfd");
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return refuse(err, which, "its pages are not ordinary ones (hugetlb)");
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return refuse(err, which, "it cannot be written");
	return 0;
}

/* Huge pages need addresses that are multiples of their size. What is to come is mapped within
 * room. NULL: see errno. */
static void *map_aligned(int fd, uint64_t bytes, uint64_t room, void **base, uint64_t *span)
{
	void *p, *at;

	*span = room + RT_CHUNK_MAX;
	p = mmap(NULL, *span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	*base = p;
	at = (void *)round_up((uintptr_t)p, RT_CHUNK_MAX);
	p = mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

static int cannot_map(int error, char *err)
{
	return rt_fail(-ENOMEM, err, RT_TEXT_LEN,
		"the application cannot map the reader's memory: %s",
		error == EAGAIN ? "it locks its memory, and its limit (RLIMIT_MEMLOCK) is too low"
				: strerror(error));
}

static uint64_t buffer_bytes(const struct rt_shm *m)
{
	return m->chunk_size * m->chunk_count;
}

/* Without access rights: no page can be touched, not even by mlockall(MCL_FUTURE). */
static int map_all(struct rt_shm *m, const int fds[RT_FD_COUNT], char *err)
{
	uint64_t size = m->bytes[RT_FD_SEGMENT];

	m->header = map_aligned(fds[RT_FD_SEGMENT], size, size, &m->segment_base, &m->segment_span);
	if (m->header)
		m->tails = map_shared(fds[RT_FD_TAILS], m->bytes[RT_FD_TAILS], PROT_NONE);
	if (m->tails)
		m->data = map_aligned(fds[RT_FD_DATA], m->bytes[RT_FD_DATA], buffer_bytes(m),
			&m->data_base, &m->data_span);
	return m->data ? 0 : cannot_map(errno, err);
}

static uint64_t filled(const struct rt_shm *m, int which)
{
	return which == RT_FD_SEGMENT ? m->filled : m->bytes[which];
}

/* In this order: facts that are read before the seals may change until the seals are set. */
static int seal_and_check(int fd, int which, uint64_t bytes, uint64_t full, char *err)
{
	struct stat st;

	if (rt_shm_seal(fd))
		return refuse(err, which, "it cannot be sealed");
	if (fstat(fd, &st) || (uint64_t)st.st_size != bytes)
		return refuse(err, which, "it is not of the size that was requested");
	if (lseek(fd, 0, SEEK_HOLE) < (off_t)full)
		return refuse(err, which, "it has holes");
	return 0;
}

/* All pages that are populated exist already: this needs page tables and no other memory. */
static int open_up(void *at, uint64_t bytes, uint64_t full, char *err)
{
	/* A mapping that mlockall(MCL_FUTURE) has locked is sparse, too. */
	(void)munlock(at, bytes);
	if (mprotect(at, bytes, PROT_READ | PROT_WRITE) || rt_pages_populate(at, full)) {
		int error = errno;

		return rt_fail(error == ENOMEM ? -ENOMEM : -EINVAL, err, RT_TEXT_LEN,
			"the application cannot write the reader's memory: %s", strerror(error));
	}
	/* khugepaged charges a collapsed page to the process whose mapping it scans: keep it away
	 * from this one. Existing huge mappings stay. */
	(void)madvise(at, bytes, MADV_NOHUGEPAGE);
	return 0;
}

static int open_all(struct rt_shm *m, char *err)
{
	void *const at[RT_FD_COUNT] = {m->header, m->data, m->tails};
	int ret = 0;

	for (int i = 0; i < RT_FD_COUNT && !ret; i++)
		ret = open_up(at[i], m->bytes[i], filled(m, i), err);
	return ret;
}

/* Chunks are as large as is good for the TLB, but at least eight for a share, and one for each
 * thread that can come: what idle rings keep for themselves is missing elsewhere. */
static void cut(struct rt_shm *m, uint64_t buffer_size, uint32_t rings)
{
	uint64_t size = RT_CHUNK_MAX, least = rings * RT_CHUNKS_OF_RING;
	uint64_t good = 4 * least > RT_MAX_RINGS ? 4 * least : RT_MAX_RINGS;

	while (size > RT_CHUNK_MIN && size > page_size() && buffer_size / size < good)
		size /= 2;
	m->chunk_size = size;
	m->chunk_count = (uint32_t)(round_up(buffer_size, size) / size);
	if (m->chunk_count < least)
		m->chunk_count = (uint32_t)least;
	m->order_count = 1;
	while (m->order_count <= m->chunk_count)
		m->order_count *= 2;
}

static uint64_t row_bytes(const struct rt_shm *m)
{
	return sizeof(struct rt_seg_count) * m->tap_capacity;
}

/* The first memory of the buffer: what comes later begins with a huge page. */
static uint64_t first_bytes(const struct rt_shm *m, uint64_t first, uint32_t rings)
{
	uint64_t least = m->chunk_size * rings * RT_CHUNKS_OF_RING, all = buffer_bytes(m);

	first = first ? round_up(first > least ? first : least, RT_HUGE_PAGE) : all;
	return first < all ? first : all;
}

/* Counters are the last table, as some of its end is not there. */
static void end_with_counts(struct rt_shm *m, uint64_t at, uint32_t rows)
{
	m->h.count_offset = round_up(at, 128);
	m->h.segment_size = round_up(m->h.count_offset + row_bytes(m) * m->ring_count, page_size());
	m->filled = round_up(m->h.count_offset + row_bytes(m) * rows, page_size());
	m->bytes[RT_FD_SEGMENT] = m->h.segment_size;
}

void rt_shm_lay_out(struct rt_shm *m, const struct rt_shm_numbers *n)
{
	uint32_t rings = n->shares > n->least ? n->shares : n->least;
	struct rt_seg_header *h = &m->h;
	uint64_t at = sizeof(*h);

	*m = (struct rt_shm){
		.ring_count = n->rings, .share_count = n->shares, .tap_capacity = n->taps};
	cut(m, n->buffer_size, rings);
	*h = (struct rt_seg_header){
		.magic = RT_SEG_MAGIC,
		.version = RT_SEG_VERSION,
		.header_size = sizeof(*h),
		.chunk_size = m->chunk_size,
		.chunk_count = m->chunk_count,
		.order_count = m->order_count,
		.ring_count = n->rings,
		.share_count = n->shares,
		.if_capacity = RT_MAX_IFS,
		.tap_capacity = n->taps,
		.pid = (uint32_t)getpid(),
	};
	h->clock_offset = (uint32_t)at;
	at += sizeof(struct rt_seg_clock);
	h->if_offset = at;
	at += sizeof(struct rt_seg_if) * RT_MAX_IFS;
	h->tap_offset = at;
	at = round_up(at + sizeof(struct rt_seg_tap) * n->taps, 128);
	h->ring_offset = at;
	at += sizeof(struct rt_seg_ring) * n->rings;
	h->orphan_offset = at;
	at += row_bytes(m);
	h->order_offset = at;
	at += sizeof(uint32_t) * n->rings * m->order_count;
	end_with_counts(m, at, n->rows);
	m->bytes[RT_FD_DATA] = first_bytes(m, n->first, rings);
	m->bytes[RT_FD_TAILS] = round_up(sizeof(struct rt_seg_tail) * n->rings, page_size());
}

void rt_shm_add_fates(struct rt_shm *m, uint32_t bits, uint32_t snap, bool history)
{
	struct rt_seg_header *h = &m->h;
	uint64_t at = h->count_offset, table;
	uint32_t rows = rt_shm_rows(m);

	h->fate_bits = bits;
	h->fate_snap = snap;
	h->fate_stride = (uint32_t)sizeof(struct rt_seg_fate) + snap;
	h->fate_history = history ? h->fate_stride - RT_FATE_HISTORY : 0;
	h->fate_pool_offset = at;
	at += sizeof(struct rt_seg_fate_pool) * RT_FATE_POOLS;
	h->fate_reason_offset = at;
	at += (uint64_t)RT_FATE_REASONS * RT_NAME_LEN;
	table = (uint64_t)h->fate_stride << bits;
	h->fate_offset = round_up(at, table < RT_HUGE_PAGE ? 128 : RT_HUGE_PAGE);
	end_with_counts(m, h->fate_offset + table, rows);
}

uint32_t rt_shm_rows(const struct rt_shm *m)
{
	uint64_t rows = (m->filled - m->h.count_offset) / row_bytes(m);

	return rows < m->ring_count ? (uint32_t)rows : m->ring_count;
}

void rt_shm_fill_rows(struct rt_shm *m, uint32_t rows)
{
	uint64_t end = round_up(m->h.count_offset + row_bytes(m) * rows, page_size());

	if (end > m->filled &&
		!rt_pages_populate((uint8_t *)m->header + m->filled, end - m->filled))
		m->filled = end;
}

uint64_t rt_shm_fate_bytes(const struct rt_seg_header *h)
{
	return h->fate_offset ? ((uint64_t)h->fate_stride << h->fate_bits) +
					sizeof(struct rt_seg_fate_pool) * RT_FATE_POOLS
			      : 0;
}

static void fill_in(struct rt_shm *m)
{
	uint8_t *base = (uint8_t *)m->header;

	*m->header = m->h;
	m->clock = (void *)(base + m->h.clock_offset);
	m->ifs = (void *)(base + m->h.if_offset);
	m->taps = (void *)(base + m->h.tap_offset);
	m->rings = (void *)(base + m->h.ring_offset);
	m->counts = (void *)(base + m->h.count_offset);
	m->orphans = (void *)(base + m->h.orphan_offset);
	m->orders = (void *)(base + m->h.order_offset);
	if (m->h.fate_offset) {
		m->fates = base + m->h.fate_offset;
		m->fate_pools = (void *)(base + m->h.fate_pool_offset);
		m->fate_reasons = (void *)(base + m->h.fate_reason_offset);
	}
	for (uint32_t i = 0; i < m->ring_count; i++)
		m->rings[i].lcore = UINT32_MAX;
	m->there = m->bytes[RT_FD_DATA];
}

int rt_shm_attach(struct rt_shm *m, const int fds[RT_FD_COUNT], char *err)
{
	int ret = 0;

	for (int i = 0; i < RT_FD_COUNT && !ret; i++)
		ret = check_kind(fds[i], i, err);
	/* Before the seals: a mapping made after them can never be made writable. */
	if (!ret)
		ret = map_all(m, fds, err);
	for (int i = 0; i < RT_FD_COUNT && !ret; i++)
		ret = seal_and_check(fds[i], i, m->bytes[i], filled(m, i), err);
	if (!ret)
		ret = open_all(m, err);
	if (ret)
		rt_shm_destroy(m);
	else
		fill_in(m);
	return ret;
}

/* As the memory of the beginning: it is mapped without access, sealed, checked, opened. */
int rt_shm_grow(struct rt_shm *m, int fd, char *err)
{
	uint64_t left = buffer_bytes(m) - m->there, bytes;
	uint8_t *at = m->data + m->there;
	int ret = check_kind(fd, RT_FD_DATA, err);
	struct stat st;

	if (ret)
		return ret;
	bytes = fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
	if (!bytes || bytes > left || (bytes < left && bytes % RT_HUGE_PAGE))
		return refuse(err, RT_FD_DATA, "it is not of a size that was requested");
	if (mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return cannot_map(errno, err);
	ret = seal_and_check(fd, RT_FD_DATA, bytes, bytes, err);
	if (!ret)
		ret = open_up(at, bytes, bytes, err);
	if (ret) /* reserved again: what is there now is the reader's */
		(void)mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	else
		m->there += bytes;
	return ret;
}

void rt_shm_destroy(struct rt_shm *m)
{
	if (m->data_base)
		munmap(m->data_base, m->data_span);
	if (m->segment_base)
		munmap(m->segment_base, m->segment_span);
	if (m->tails)
		munmap(m->tails, m->bytes[RT_FD_TAILS]);
	*m = (struct rt_shm){0};
}
