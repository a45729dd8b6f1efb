/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_probe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/atomics.h"
#include "common/calls.h"
#include "common/clock.h"
#include "common/ipc.h"

#define CLOCK_AT 256u
#define IF_AT    512u
#define TAP_AT   (IF_AT + sizeof(struct rt_seg_if))
#define RING_AT  1024u
#define COUNT_AT (RING_AT + RT_MAX_RINGS * sizeof(struct rt_seg_ring))
#define ORDER_AT (COUNT_AT + (RT_MAX_RINGS + 1) * sizeof(struct rt_seg_count))

static uint32_t chunks(const struct fake_probe *p)
{
	return (uint32_t)(p->rings * p->ring_size / p->chunk_size);
}

static uint32_t order_count(const struct fake_probe *p)
{
	uint32_t n = 1;

	while (n <= chunks(p))
		n *= 2;
	return n;
}

static size_t segment_bytes(const struct fake_probe *p)
{
	return ORDER_AT + sizeof(uint32_t) * p->rings * order_count(p);
}

static size_t bytes_of(const struct fake_probe *p, int which)
{
	size_t bytes = which == RT_FD_SEGMENT ? segment_bytes(p)
		       : which == RT_FD_DATA  ? p->rings * p->ring_size
					      : p->rings * sizeof(struct rt_seg_tail);
	return (bytes + 4095) & ~(size_t)4095;
}

static void publish_clock(struct fake_probe *p)
{
	struct timespec pause = {0, 20000000};
	struct rt_clock clock;
	uint64_t tsc[2], ns[2];
	rt_clock_sample(&tsc[0], &ns[0]);
	nanosleep(&pause, NULL);
	rt_clock_sample(&tsc[1], &ns[1]);
	rt_clock_init(&clock, tsc[0], ns[0], tsc[1], ns[1], 0);
	rt_clock_publish((struct rt_seg_clock *)((uint8_t *)p->header + CLOCK_AT), &clock.line);
}

static void describe(struct fake_probe *p)
{
	uint8_t *base = (uint8_t *)p->header;
	struct rt_seg_if *port = (struct rt_seg_if *)(base + IF_AT);
	struct rt_seg_tap *tap = (struct rt_seg_tap *)(base + TAP_AT);
	*port = (struct rt_seg_if){.name = "fake0",
		.driver = "fake",
		.snaplen = 262144,
		.nb_rx_queues = 1,
		.nb_tx_queues = 1,
		.state = RT_IF_PRESENT};
	*tap = (struct rt_seg_tap){.direction = RT_DIR_RX};
	*p->header = (struct rt_seg_header){.magic = RT_SEG_MAGIC,
		.version = RT_SEG_VERSION,
		.header_size = sizeof(*p->header),
		.segment_size = segment_bytes(p),
		.chunk_size = p->chunk_size,
		.chunk_count = chunks(p),
		.order_count = order_count(p),
		.ring_count = p->rings,
		.share_count = p->rings,
		.if_capacity = 1,
		.tap_capacity = 1,
		.clock_offset = CLOCK_AT,
		.if_offset = IF_AT,
		.tap_offset = TAP_AT,
		.ring_offset = RING_AT,
		.count_offset = COUNT_AT,
		.orphan_offset = COUNT_AT + p->rings * sizeof(struct rt_seg_count),
		.order_offset = ORDER_AT,
		.pid = (uint32_t)getpid(),
		.state = RT_SEG_ARMED,
		.if_count = 1,
		.tap_count = 1};
	for (uint32_t r = 0; r < p->rings; r++) {
		uint32_t *order = (uint32_t *)(base + ORDER_AT) + r * order_count(p);

		p->header->used[r / 64] |= 1ull << r % 64;
		for (uint32_t i = 0; i < chunks(p) / p->rings; i++)
			order[i] = r * (chunks(p) / p->rings) + i;
	}
	publish_clock(p);
}

static void lay_out(const struct fake_probe *p, struct rt_msg_layout *l)
{
	*l = (struct rt_msg_layout){.ring_count = p->rings,
		.share_count = p->rings,
		.if_capacity = 1,
		.tap_capacity = 1,
		.chunk_count = chunks(p),
		.order_count = order_count(p),
		.chunk_size = p->chunk_size};
	for (int i = 0; i < RT_FD_COUNT; i++)
		l->bytes[i] = bytes_of(p, i);
	l->filled = l->bytes[RT_FD_SEGMENT];
	for (int i = 0; i < RT_MAX_RINGS; i++)
		l->node[i] = RT_NODE_UNKNOWN;
	rt_msg_init(&l->h, RT_MSG_LAYOUT, sizeof(*l));
}

static void *map(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		madvise(p, bytes, MADV_POPULATE_WRITE);
	return p == MAP_FAILED ? NULL : p;
}

/* The reader's memory. False: it has not come or cannot be mapped. */
static bool take_memory(struct fake_probe *p, const int *fds, unsigned n)
{
	if (n != RT_FD_COUNT)
		return false;
	p->header = map(fds[RT_FD_SEGMENT], bytes_of(p, RT_FD_SEGMENT));
	p->data = map(fds[RT_FD_DATA], bytes_of(p, RT_FD_DATA));
	if (p->header == NULL || p->data == NULL)
		return false;
	p->ring = (struct rt_seg_ring *)((uint8_t *)p->header + RING_AT);
	describe(p);
	return true;
}

static void answer(struct fake_probe *p, int sock, uint16_t type, const int *fds, unsigned n)
{
	struct rt_msg_layout layout;
	struct rt_msg_header h;
	switch (type) {
	case RT_MSG_HELLO: {
		struct rt_msg_welcome w = {.pid = (uint32_t)getpid(),
			.prefix = "bench",
			.program = "bench",
			.dpdk = "none",
			.probe = "fake"};
		rt_msg_init(&w.h, RT_MSG_WELCOME, sizeof(w));
		rt_msg_send(sock, &w.h, NULL, 0);
		break;
	}
	case RT_MSG_OPEN:
		lay_out(p, &layout);
		rt_msg_send(sock, &layout.h, NULL, 0);
		break;
	case RT_MSG_MEMORY:
		if (!take_memory(p, fds, n))
			break; /* the reader's wait for the answer ends in an error */
		rt_msg_init(&h, RT_MSG_OPENED, sizeof(h));
		rt_msg_send(sock, &h, NULL, 0);
		break;
	case RT_MSG_START:
		rt_msg_init(&h, RT_MSG_STARTED, sizeof(h));
		rt_msg_send(sock, &h, NULL, 0);
		break;
	case RT_MSG_STOP:
		/* Pairs with no acquire: ringtap_capture_stop() waits for the message. */
		rt_store_release(&p->header->state, RT_SEG_STOPPED);
		rt_msg_init(&h, RT_MSG_STOPPED, sizeof(h));
		rt_msg_send(sock, &h, NULL, 0);
		break;
	default: break;
	}
}

static void *serve(void *arg)
{
	static union {
		struct rt_msg_header header;
		uint8_t bytes[RT_MSG_MAX];
	} msg;
	struct fake_probe *p = arg;
	int sock, fds[RT_FD_COUNT];
	unsigned n;
	while ((sock = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		while (rt_msg_recv(sock, &msg, sizeof(msg), fds, RT_FD_COUNT, &n, -1) > 0) {
			answer(p, sock, msg.header.type, fds, n);
			while (n > 0)
				close(fds[--n]);
		}
		close(sock);
	}
	return NULL;
}

static int listen_there(struct fake_probe *p)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	snprintf(p->dir, sizeof(p->dir), "/tmp/ringtap-bench.XXXXXX");
	if (mkdtemp(p->dir) == NULL)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", p->dir, RT_SOCKET_NAME);
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
		listen(p->listener, 1) != 0)
		return -errno;
	return 0;
}

int fake_probe_start(struct fake_probe *p, uint32_t rings, uint64_t ring_size)
{
	memset(p, 0, sizeof(*p));
	p->rings = rings;
	p->ring_size = ring_size;
	p->chunk_size = ring_size / RT_CHUNKS_OF_RING;
	if (p->chunk_size > RT_CHUNK_MAX)
		p->chunk_size = RT_CHUNK_MAX;
	int err = listen_there(p);
	if (err == 0)
		err = -pthread_create(&p->thread, NULL, serve, p);
	return err;
}

void fake_probe_stop(struct fake_probe *p)
{
	char path[128];
	shutdown(p->listener, SHUT_RDWR); /* wakes the thread */
	pthread_join(p->thread, NULL);
	close(p->listener);
	snprintf(path, sizeof(path), "%s/%s", p->dir, RT_SOCKET_NAME);
	unlink(path);
	rmdir(p->dir);
	if (p->header != NULL)
		munmap(p->header, bytes_of(p, RT_FD_SEGMENT));
	if (p->data != NULL)
		munmap(p->data, bytes_of(p, RT_FD_DATA));
}

void fake_probe_publish(struct fake_probe *p, uint32_t ring, uint64_t head, uint64_t last_ns)
{
	rt_store(&p->ring[ring].last_ns, last_ns);
	/* Pairs with the acquire of head in rt_in_refresh(). */
	rt_store_release(&p->ring[ring].head, head);
}
