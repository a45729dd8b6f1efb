/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/pages.h"
#include "shm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t rt_shm_ring_size(uint64_t wish)
{
	uint64_t size = RT_RING_SIZE_MIN;

	while (size < page_size() || (size < wish && size < RT_RING_SIZE_MAX))
		size *= 2;
	return size;
}

/* A page fault in a polling thread is a defect: write to every page now, and keep it if we may. */
static int fault_in(void *p, uint64_t size)
{
	if (madvise(p, size, MADV_POPULATE_WRITE)) {
		if (errno == ENOMEM || errno == EFAULT)
			return -ENOMEM;
		for (uint64_t o = 0; o < size; o += page_size())
			((volatile uint8_t *)p)[o] = 0;
	}
	return 0;
}

static int make_fd(const char *name, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size)) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

/* The reader trusts only sealed memory, for a truncation would kill it with SIGBUS. What it
 * must not write is closed to new writers, which also forbids punching holes into it. */
int rt_shm_seal(int fd, bool peer_writes)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (!peer_writes && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno != EINVAL)
		return -errno; /* EINVAL: kernel before 5.1, the reader is on its honour */
	return fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) ? -errno : 0;
}

static void *map_shared(int fd, uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

void *rt_shm_make(int *fd, const char *name, uint64_t size)
{
	void *p = NULL;

	*fd = make_fd(name, size);
	if (*fd >= 0)
		p = map_shared(*fd, size);
	if (p && fault_in(p, size)) {
		munmap(p, size);
		p = NULL;
	}
	if (!p && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	if (p)
		(void)mlock(p, size); /* else it can be swapped out */
	return p;
}

/* Maps every ring twice in a row. Huge pages need addresses that are multiples of their size. */
static int map_data(struct rt_shm *m)
{
	bool huge = m->ring_size >= RT_RING_SIZE_HUGE;
	uint64_t align = huge ? RT_RING_SIZE_HUGE : page_size();
	uint8_t *at;

	m->data_span = (uint64_t)m->ring_count * m->ring_size * 2 + align;
	m->data_base = mmap(NULL, m->data_span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->data_base == MAP_FAILED) {
		m->data_base = NULL;
		return -errno;
	}
	at = (uint8_t *)round_up((uintptr_t)m->data_base, align);
	for (uint32_t i = 0; i < m->ring_count; i++, at += 2 * m->ring_size) {
		for (int half = 0; half < 2; half++) {
			void *p = mmap(at + (uint64_t)half * m->ring_size, m->ring_size,
				PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd[RT_FD_DATA],
				(off_t)(i * m->ring_size));

			if (p == MAP_FAILED)
				return -errno;
			if (huge)
				(void)madvise(p, m->ring_size, MADV_HUGEPAGE);
			if (fault_in(p, m->ring_size))
				return -ENOMEM;
			if (huge)
				rt_pages_collapse(p, m->ring_size);
		}
		/* RLIMIT_MEMLOCK may forbid it: then it can be swapped out. One half is enough, and
		 * does not count twice. */
		(void)mlock(at, m->ring_size);
		m->data[i] = at;
	}
	return 0;
}

static void lay_out(struct rt_shm *m, struct rt_seg_header *h)
{
	uint64_t at = sizeof(*h);

	*h = (struct rt_seg_header){
		.magic = RT_SEG_MAGIC,
		.version = RT_SEG_VERSION,
		.header_size = sizeof(*h),
		.ring_size = m->ring_size,
		.ring_count = m->ring_count,
		.if_capacity = RT_MAX_IFS,
		.tap_capacity = m->tap_capacity,
		.pid = (uint32_t)getpid(),
	};
	h->clock_offset = (uint32_t)at;
	at += sizeof(struct rt_seg_clock);
	h->if_offset = at;
	at += sizeof(struct rt_seg_if) * RT_MAX_IFS;
	h->tap_offset = at;
	at = round_up(at + sizeof(struct rt_seg_tap) * m->tap_capacity, 128);
	h->ring_offset = at;
	at += sizeof(struct rt_seg_ring) * m->ring_count;
	h->count_offset = at;
	at += sizeof(struct rt_seg_count) * m->tap_capacity * (m->ring_count + 1);
	h->segment_size = round_up(at, page_size());
}

static void find_tables(struct rt_shm *m)
{
	uint8_t *base = (uint8_t *)m->header;

	m->clock = (void *)(base + m->header->clock_offset);
	m->ifs = (void *)(base + m->header->if_offset);
	m->taps = (void *)(base + m->header->tap_offset);
	m->rings = (void *)(base + m->header->ring_offset);
	m->counts = (void *)(base + m->header->count_offset);
	for (uint32_t i = 0; i < m->ring_count; i++)
		m->rings[i].lcore = UINT32_MAX;
}

static int create_all(struct rt_shm *m)
{
	static const char *const names[] = {"ringtap-segment", "ringtap-data", "ringtap-tails"};
	struct rt_seg_header h;
	uint64_t sizes[RT_FD_COUNT];
	int ret;

	lay_out(m, &h);
	m->segment_size = h.segment_size;
	m->tails_size = round_up(sizeof(struct rt_seg_tail) * m->ring_count, page_size());
	sizes[RT_FD_SEGMENT] = m->segment_size;
	sizes[RT_FD_DATA] = m->ring_size * m->ring_count;
	sizes[RT_FD_TAILS] = m->tails_size;
	for (int i = 0; i < RT_FD_COUNT; i++) {
		m->fd[i] = make_fd(names[i], sizes[i]);
		if (m->fd[i] < 0)
			return m->fd[i];
	}
	m->header = map_shared(m->fd[RT_FD_SEGMENT], m->segment_size);
	m->tails = map_shared(m->fd[RT_FD_TAILS], m->tails_size);
	m->data = calloc(m->ring_count, sizeof(*m->data));
	if (!m->header || !m->tails || !m->data)
		return -ENOMEM;
	if (fault_in(m->header, m->segment_size) || fault_in(m->tails, m->tails_size))
		return -ENOMEM;
	*m->header = h;
	find_tables(m);
	ret = map_data(m);
	for (int i = 0; i < RT_FD_COUNT && !ret; i++)
		ret = rt_shm_seal(m->fd[i], i == RT_FD_TAILS);
	return ret;
}

int rt_shm_create(struct rt_shm *m, uint32_t rings, uint64_t ring_size, uint32_t taps)
{
	int ret;

	*m = (struct rt_shm){.fd = {-1, -1, -1},
		.ring_size = ring_size,
		.ring_count = rings,
		.tap_capacity = taps};
	/* memfds reserve nothing: past the limit no error would come, but the OOM killer. */
	if (ring_size > rt_pages_available() / 2 / rings)
		return -ENOMEM;
	ret = create_all(m);
	if (ret)
		rt_shm_destroy(m);
	return ret;
}

void rt_shm_destroy(struct rt_shm *m)
{
	if (m->data_base)
		munmap(m->data_base, m->data_span);
	if (m->header)
		munmap(m->header, m->segment_size);
	if (m->tails)
		munmap(m->tails, m->tails_size);
	free(m->data);
	for (int i = 0; i < RT_FD_COUNT; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
	}
	*m = (struct rt_shm){.fd = {-1, -1, -1}};
}
