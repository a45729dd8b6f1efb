/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collapse.h"
#include "common/atomics.h"
#include "common/fail.h"
#include "common/pages.h"
#include "memory.h"
#include "reader/wait.h"
#include "segment.h"

#define SEGMENT_SLACK (256u << 10) /* bytes; alignment of its tables, a page of 64 KiB */
#define NODES_MAX     1024
/* A piece of the rest is as large as what is there before it, within these: few files, and the
 * probe's control thread is held up for milliseconds. */
#define PIECE_MIN (16ull << 20)
#define PIECE_MAX (1ull << 30)
#define STEP      (16ull << 20) /* bytes that are populated before the end of a capture is noticed */

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t pages(uint64_t bytes)
{
	return (bytes + page_size() - 1) / page_size() * page_size();
}

static int bad(char *err, size_t errlen, const char *what)
{
	return rt_fail(-EBADMSG, err, errlen, "the probe requests impossible memory: %s", what);
}

static uint64_t buffer_bytes(const struct rt_msg_layout *l)
{
	return l->chunk_size * l->chunk_count;
}

static uint64_t to_fill(const struct rt_msg_layout *l, int which)
{
	return which == RT_FD_SEGMENT ? l->filled : l->bytes[which];
}

/* Its final size, with the rest of the buffer. */
static uint64_t in_the_end(const struct rt_msg_layout *l, int which)
{
	return which == RT_FD_DATA ? buffer_bytes(l) : to_fill(l, which);
}

static uint64_t tables(const struct rt_msg_layout *l)
{
	return sizeof(struct rt_seg_header) + sizeof(struct rt_seg_clock) +
	       sizeof(struct rt_seg_if) * l->if_capacity +
	       sizeof(struct rt_seg_tap) * l->tap_capacity +
	       sizeof(struct rt_seg_ring) * l->ring_count +
	       sizeof(struct rt_seg_count) * l->tap_capacity *
		       (l->ring_count + 1ull) + /* orphans */
	       sizeof(uint32_t) * l->ring_count * l->order_count;
}

/* 0: none. */
static uint64_t fate_bytes(const struct rt_msg_fates *f)
{
	return f ? f->bytes : 0;
}

static int check_fates(const struct rt_msg_fates *f, char *err, size_t errlen)
{
	uint64_t snap;

	if (!f)
		return 0;
	snap = f->stride - (uint64_t)sizeof(struct rt_seg_fate);
	if (!rt_fates_valid(f->bits, f->stride, (uint32_t)snap) || snap > RT_FATE_SNAP_MAX ||
		f->bytes != ((uint64_t)f->stride << f->bits) +
				    sizeof(struct rt_seg_fate_pool) * RT_FATE_POOLS)
		return bad(err, errlen, "a table of fates of another size");
	return 0;
}

static int check_segment(
	const struct rt_msg_layout *l, const struct rt_msg_fates *f, char *err, size_t errlen)
{
	uint64_t least = tables(l) + fate_bytes(f), bytes = l->bytes[RT_FD_SEGMENT];

	/* The table of fates is aligned as huge pages are. */
	if (bytes < least || bytes % page_size() || !l->filled || l->filled > bytes ||
		bytes > least + SEGMENT_SLACK + (f ? RT_HUGE_PAGE : 0))
		return bad(err, errlen, "tables of another size");
	return 0;
}

/* The first memory has all chunks, or huge pages of them. */
static bool first_is_valid(const struct rt_msg_layout *l)
{
	uint64_t first = l->bytes[RT_FD_DATA], all = buffer_bytes(l);

	return first == all || (first && first < all && first % RT_HUGE_PAGE == 0);
}

static int check(const struct rt_msg_layout *l, const struct rt_msg_fates *f, uint64_t most,
	char *err, size_t errlen)
{
	int ret = check_fates(f, err, errlen);

	if (ret)
		return ret;
	if (!l->ring_count || l->ring_count > RT_MAX_RINGS || !l->share_count ||
		l->share_count > l->ring_count || l->if_capacity > RT_MAX_IFS ||
		l->tap_capacity > RT_MAX_TAPS)
		return bad(err, errlen, "numbers of rings or tables");
	if (!rt_chunks_valid(l->chunk_size, l->chunk_count, l->order_count, l->share_count))
		return bad(err, errlen, "numbers or sizes of chunks");
	/* The probe rounds up to a chunk; each ring that is likely to be used needs some. */
	if (most < RT_CHUNK_MIN * RT_CHUNKS_OF_RING * l->ring_count)
		most = RT_CHUNK_MIN * RT_CHUNKS_OF_RING * l->ring_count;
	if (l->chunk_size * (l->chunk_count - 1ull) >= most)
		return bad(err, errlen, "a buffer that is larger than requested");
	if (!first_is_valid(l) ||
		l->bytes[RT_FD_TAILS] != pages(sizeof(struct rt_seg_tail) * l->ring_count))
		return bad(err, errlen, "rings of another size");
	return check_segment(l, f, err, errlen);
}

/* RLIMIT_FSIZE also applies to ftruncate() of a memfd, which sends SIGXFSZ. */
static int check_file_limit(const struct rt_msg_layout *l, char *err, size_t errlen)
{
	struct rlimit limit;

	for (int i = 0; i < RT_FD_COUNT; i++) {
		uint64_t bytes = i == RT_FD_DATA ? buffer_bytes(l) : l->bytes[i];

		if (getrlimit(RLIMIT_FSIZE, &limit) || bytes <= limit.rlim_cur)
			continue;
		return rt_fail(-EFBIG, err, errlen,
			"the buffer needs %llu MiB, more than the limit of file sizes (ulimit -f); "
			"raise it, or try a smaller buffer",
			(unsigned long long)bytes >> 20);
	}
	return 0;
}

/* A memfd reserves nothing: beyond the limit, the OOM killer acts instead of an error. */
static int check_available(uint64_t need, char *err, size_t errlen)
{
	uint64_t there = rt_pages_available();

	if (need <= there / 2)
		return 0;
	return rt_fail(-ENOMEM, err, errlen,
		"not enough memory: the buffer needs %llu MiB and may take half of the %llu MiB "
		"that are available to this process",
		(unsigned long long)need >> 20, (unsigned long long)there >> 20);
}

/* A policy of the memory, not of the mapping: it also applies to page faults of the application. */
static void prefer_node(void *p, uint64_t size, int32_t node)
{
	const unsigned bits = 8 * sizeof(unsigned long);
	unsigned long mask[NODES_MAX / (8 * sizeof(unsigned long))] = {0};

	if (node < 0 || node >= NODES_MAX)
		return;
	mask[(unsigned)node / bits] |= 1ul << (unsigned)node % bits;
	(void)syscall(SYS_mbind, p, size, MPOL_PREFERRED, mask, (unsigned long)NODES_MAX + 1, 0);
}

/* Share i of the bytes from..to begins there; as in first_of() of the probe. */
static uint64_t share_at(const struct rt_msg_layout *l, uint64_t i, uint64_t from, uint64_t to)
{
	return from + i * ((to - from) / l->chunk_size) / l->share_count * l->chunk_size;
}

/* The chunks that rings of threads on a node take first. Both memories, the first and the rest,
 * have all shares. at: bytes of the buffer. */
static void prefer_nodes(uint8_t *p, const struct rt_msg_layout *l, uint64_t at, uint64_t size)
{
	uint64_t first = l->bytes[RT_FD_DATA];
	uint64_t from = at < first ? 0 : first, to = at < first ? first : buffer_bytes(l);

	for (uint32_t i = 0; i < l->share_count; i++) {
		uint64_t begin = share_at(l, i, from, to), end = share_at(l, i + 1, from, to);

		begin = begin > at ? begin : at;
		end = end < at + size ? end : at + size;
		if (begin < end)
			prefer_node(p + (begin - at), end - begin, l->node[i]);
	}
}

/* quit: NULL: never. */
static int populate(uint8_t *at, uint64_t size, const uint32_t *quit)
{
	int ret = 0;

	for (uint64_t done = 0; done < size && !ret; done += STEP) {
		uint64_t step = size - done < STEP ? size - done : STEP;

		if ((quit && rt_load(quit)) || rt_wait_ns(0))
			return -ECANCELED;
		ret = rt_pages_populate(at + done, step);
		if (!ret && step >= RT_HUGE_PAGE && !(quit && rt_load(quit)))
			rt_collapse(at + done, step);
	}
	return ret;
}

/* Huge pages need a mapping that is aligned as they are. They are requested only here: the kernel
 * charges them to the process that does it. buffer_at: -1: no part of the buffer. */
static int fill_huge(int fd, const struct rt_msg_layout *l, int64_t buffer_at, uint64_t size,
	const uint32_t *quit)
{
	uint64_t span = size + RT_HUGE_PAGE;
	uint8_t *base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at;
	int ret = 0;

	if (base == MAP_FAILED)
		return -errno;
	at = base + (RT_HUGE_PAGE - (uintptr_t)base % RT_HUGE_PAGE) % RT_HUGE_PAGE;
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		ret = -errno;
	if (!ret && buffer_at >= 0)
		prefer_nodes(at, l, (uint64_t)buffer_at, size);
	if (!ret && size >= RT_HUGE_PAGE)
		(void)madvise(at, size, MADV_HUGEPAGE);
	if (!ret)
		ret = populate(at, size, quit);
	munmap(base, span);
	return ret;
}

static int fill_table(int fd, uint64_t size, struct rt_seg_tail **keep)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int ret;

	if (p == MAP_FAILED)
		return -errno;
	ret = rt_pages_populate(p, size);
	if (ret || !keep)
		munmap(p, size);
	else
		*keep = p;
	return ret;
}

/* Without fates it is small, and little of it is in use. */
static int fill_segment(int fd, const struct rt_msg_layout *l, bool fates)
{
	return fates ? fill_huge(fd, l, -1, l->filled, NULL) : fill_table(fd, l->filled, NULL);
}

/* Seals the size against the application too: a truncation would send SIGBUS to this process. The
 * probe sets the other seals, as it must map the memory first. -1: see errno. */
static int make_file(const char *name, uint64_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), error;

	if (fd < 0 || (!ftruncate(fd, (off_t)bytes) &&
			      !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int make_rest(struct rt_memory *m, const struct rt_msg_layout *l)
{
	uint64_t all = buffer_bytes(l), at = l->bytes[RT_FD_DATA], room = all / PIECE_MIN + 2;
	struct rt_rest *r = m->rest = malloc(sizeof(*r) + room * sizeof(r->pieces[0]));

	if (!r)
		return -ENOMEM;
	r->layout = *l;
	r->count = r->quit = 0;
	for (uint64_t bytes; at < all; at += bytes) {
		bytes = at > PIECE_MAX ? PIECE_MAX : at < PIECE_MIN ? PIECE_MIN : at;
		bytes = bytes < all - at ? bytes : all - at;
		r->pieces[r->count] = (struct rt_piece){
			.fd = make_file("ringtap-data", bytes), .at = at, .bytes = bytes};
		if (r->pieces[r->count].fd < 0)
			return -errno;
		r->count++;
	}
	return 0;
}

static int make(struct rt_memory *m, const struct rt_msg_layout *l, bool fates)
{
	static const char *const names[] = {"ringtap-segment", "ringtap-data", "ringtap-tails"};
	uint64_t first = l->bytes[RT_FD_DATA];
	int ret;

	for (int i = 0; i < RT_FD_COUNT; i++) {
		m->fd[i] = make_file(names[i], l->bytes[i]);
		if (m->fd[i] < 0)
			return -errno;
	}
	ret = fill_segment(m->fd[RT_FD_SEGMENT], l, fates);
	if (ret)
		return ret;
	m->tails_size = l->bytes[RT_FD_TAILS];
	ret = fill_table(m->fd[RT_FD_TAILS], m->tails_size, &m->tails);
	if (!ret)
		ret = fill_huge(m->fd[RT_FD_DATA], l, 0, first, NULL);
	return ret || first == buffer_bytes(l) ? ret : make_rest(m, l);
}

uint64_t rt_memory_most(void)
{
	uint64_t most = rt_pages_available() / 4;

	return most < RT_BUFFER_MAX ? most : RT_BUFFER_MAX;
}

int rt_memory_make(struct rt_memory *m, const struct rt_msg_layout *l,
	const struct rt_msg_fates *fates, uint64_t most, char *err, size_t errlen)
{
	int ret = check(l, fates, most, err, errlen);
	uint64_t need = 0;

	*m = RT_MEMORY_NONE;
	for (int i = 0; i < RT_FD_COUNT; i++)
		need += in_the_end(l, i);
	if (!ret)
		ret = check_available(need, err, errlen);
	if (!ret)
		ret = check_file_limit(l, err, errlen);
	if (ret)
		return ret;
	ret = make(m, l, fates);
	if (ret) {
		rt_memory_free(m);
		snprintf(err, errlen,
			ret == -ECANCELED ? RT_INTERRUPTED : "cannot make the rings: %s",
			strerror(-ret));
	}
	return ret;
}

void rt_memory_close(struct rt_memory *m)
{
	for (int i = 0; i < RT_FD_COUNT; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
		m->fd[i] = -1;
	}
}

void rt_memory_free(struct rt_memory *m)
{
	rt_memory_close(m);
	if (m->tails)
		munmap(m->tails, m->tails_size);
	m->tails = NULL;
	rt_rest_free(m->rest);
	m->rest = NULL;
}

int rt_rest_fill(const struct rt_rest *r, uint32_t piece, char *err)
{
	const struct rt_piece *p = &r->pieces[piece];
	/* Other programs may have taken some since the capture began. */
	int ret = check_available(buffer_bytes(&r->layout) - p->at, err, RT_TEXT_LEN);

	if (ret)
		return ret;
	ret = fill_huge(p->fd, &r->layout, (int64_t)p->at, p->bytes, &r->quit);
	if (ret)
		snprintf(err, RT_TEXT_LEN, "cannot populate its memory: %s", strerror(-ret));
	return ret;
}

void rt_rest_free(struct rt_rest *r)
{
	for (uint32_t i = 0; r && i < r->count; i++) {
		if (r->pieces[i].fd >= 0)
			close(r->pieces[i].fd);
	}
	free(r);
}
