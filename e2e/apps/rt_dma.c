/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host of one guest, at the socket of its last argument, by the asynchronous functions of the
 * vhost library: a DMA device copies. It takes what the guest sends, and sends on command:
 *
 *   send N  N packets more; what the guest has no room for is tried again
 *   count   whether the guest is there, packets submitted, refused (at each try), completed,
 * received
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_dmadev.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_vhost.h>
#include <rte_vhost_async.h>

#define BURST   32
#define MBUFS   8191
#define DMA     0
#define VCHAN   0
#define TO      0 /* virtqueues */
#define FROM    1
#define LEAST   60
#define LENGTHS 1400

static int guest = -1; /* atomic */
static struct rte_mempool *pool;
static struct rte_mbuf *waiting[BURST];
static unsigned first, behind; /* those still waiting */
static uint32_t to_send, made;
static unsigned long submitted, refused, completed, received;

static int connected(int vid)
{
	if (rte_vhost_async_channel_register(vid, TO) ||
		rte_vhost_async_channel_register(vid, FROM))
		return -1;
	__atomic_store_n(&guest, vid, __ATOMIC_RELEASE);
	return 0;
}

static void gone(int vid)
{
	(void)vid;
	_exit(0);
}

/* Its number, again and again; one of eight has two segments. */
static struct rte_mbuf *make(uint32_t number)
{
	uint32_t len = LEAST + number * 97 % LENGTHS, cut = number % 8 ? len : len / 2;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *rest = NULL;
	uint8_t *p = m ? (uint8_t *)rte_pktmbuf_append(m, (uint16_t)cut) : NULL, *q = NULL;
	uint32_t word = rte_cpu_to_be_32(number);

	if (cut < len) {
		rest = rte_pktmbuf_alloc(pool);
		q = rest ? (uint8_t *)rte_pktmbuf_append(rest, (uint16_t)(len - cut)) : NULL;
	}
	if (!p || (cut < len && (!q || rte_pktmbuf_chain(m, rest)))) {
		puts("no mbuf");
		exit(1);
	}
	for (uint32_t i = 0; i < len; i++)
		*(i < cut ? p + i : q + i - cut) = ((uint8_t *)&word)[i % 4];
	return m;
}

static void send_some(int vid)
{
	uint16_t n;

	if (first == behind) {
		first = behind = 0;
		while (behind < BURST && made < to_send)
			waiting[behind++] = make(made++);
	}
	n = rte_vhost_submit_enqueue_burst(
		vid, TO, waiting + first, (uint16_t)(behind - first), DMA, VCHAN);
	first += n;
	submitted += n;
	refused += behind - first;
}

static void turn(int vid)
{
	struct rte_mbuf *m[BURST];
	int flying;
	uint16_t n;

	n = rte_vhost_async_try_dequeue_burst(vid, FROM, pool, m, BURST, &flying, DMA, VCHAN);
	rte_pktmbuf_free_bulk(m, n);
	received += n;
	if (made < to_send || first < behind)
		send_some(vid);
	n = rte_vhost_poll_enqueue_completed(vid, TO, m, BURST, DMA, VCHAN);
	rte_pktmbuf_free_bulk(m, n);
	completed += n;
}

static int set_up(const char *path)
{
	static const struct rte_vhost_device_ops ops = {
		.new_device = connected, .destroy_device = gone};
	const struct rte_dma_conf conf = {.nb_vchans = 1};
	const struct rte_dma_vchan_conf vchan = {
		.direction = RTE_DMA_DIR_MEM_TO_MEM, .nb_desc = 1024};

	pool = rte_pktmbuf_pool_create(
		"pool", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return !pool || rte_dma_configure(DMA, &conf) || rte_dma_vchan_setup(DMA, VCHAN, &vchan) ||
	       rte_dma_start(DMA) || rte_vhost_async_dma_configure(DMA, VCHAN) ||
	       rte_vhost_driver_register(path, RTE_VHOST_USER_CLIENT | RTE_VHOST_USER_ASYNC_COPY) ||
	       rte_vhost_driver_callback_register(path, &ops) || rte_vhost_driver_start(path);
}

static void obey(void)
{
	char line[64];
	unsigned n;

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	if (sscanf(line, "send %u", &n) == 1) {
		to_send += n;
		puts("ok");
	} else {
		printf("ok %d %lu %lu %lu %lu\n", __atomic_load_n(&guest, __ATOMIC_ACQUIRE) >= 0,
			submitted, refused, completed, received);
	}
}

int main(int argc, char **argv)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	int n = rte_eal_init(argc, argv), vid;

	setvbuf(stdin, NULL, _IONBF, 0); /* poll() has to see each line */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (n < 0 || n + 1 >= argc || set_up(argv[n + 1])) {
		puts("no vhost with DMA");
		return 1;
	}
	puts("ready");
	for (;;) {
		if (poll(&in, 1, 0))
			obey();
		vid = __atomic_load_n(&guest, __ATOMIC_ACQUIRE);
		if (vid >= 0)
			turn(vid);
	}
}
