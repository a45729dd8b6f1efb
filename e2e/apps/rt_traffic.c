/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "rt_own_pool.h"
#include "rt_ports.h"
#include "rt_traffic.h"

#define BURST 32

struct job {
	uint16_t port;
	uint16_t queue;
	uint64_t n;
	uint64_t done;
	pthread_barrier_t *barrier; /* NULL: start at once */
};

static struct {
	uint16_t from, to, queue, second;
	unsigned lcore, doze_us;
	pthread_mutex_t lock;
	bool running;
	uint64_t count;
} loop;

uint64_t traffic_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int build(const struct shape *s, uint32_t first, uint32_t n, bool rx, struct rte_mbuf **out)
{
	for (uint32_t i = 0; i < n; i++) {
		out[i] = shape_build(s, first + i, rx);
		if (!out[i]) {
			rte_pktmbuf_free_bulk(out, i);
			return -ENOMEM;
		}
		shape_flag(s, out[i], false);
	}
	return 0;
}

/* Repairs broken chains before they are freed, as the mempool library checks them. */
static void mend(const struct shape *s, struct rte_mbuf **mbufs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (s->cut_chain)
			mbufs[i]->nb_segs--;
		if (s->untrue_length)
			mbufs[i]->pkt_len -= 1000;
		shape_flag(s, mbufs[i], true);
	}
}

#define HELD_MAX 4096

static struct {
	bool on;
	uint32_t count;
	struct rte_mbuf *mbufs[HELD_MAX];
} held;

int64_t traffic_hold(bool on)
{
	held.on = on;
	return held.count;
}

int64_t traffic_release(uint32_t n)
{
	n = RTE_MIN(n, held.count);
	rte_pktmbuf_free_bulk(held.mbufs, n);
	held.count -= n;
	memmove(held.mbufs, held.mbufs + n, held.count * sizeof(held.mbufs[0]));
	return n;
}

int64_t traffic_take_back(uint32_t n)
{
	n = RTE_MIN(n, held.count);
	held.count -= n;
	for (uint32_t i = 0; i < n; i++)
		own_pool_take_back(held.mbufs[held.count + i]);
	return n;
}

static void consume(struct rte_mbuf **mbufs, uint32_t n)
{
	if (!held.on || n > HELD_MAX - held.count) {
		rte_pktmbuf_free_bulk(mbufs, n);
		return;
	}
	memcpy(held.mbufs + held.count, mbufs, n * sizeof(mbufs[0]));
	held.count += n;
}

int64_t traffic_rx(uint16_t port, uint16_t queue, const struct shape *s, uint32_t n, uint32_t burst,
	struct burst_times *times)
{
	struct rte_mbuf *mbufs[TRAFFIC_BURST_MAX];
	struct rte_ring *ring =
		port < PORTS_MAX && queue < QUEUES_MAX ? port_rings[port].rx[queue] : NULL;

	if (!ring)
		return -ENODEV;
	for (uint32_t at = 0; at < n; at += burst) {
		uint32_t count = RTE_MIN(burst, n - at);

		if (build(s, at, count, true, mbufs))
			return -ENOMEM;
		if (!rte_ring_enqueue_bulk(ring, (void **)mbufs, count, NULL))
			return -ENOSPC;
		times->before_ns = at ? times->before_ns : traffic_now_ns();
		if (rte_eth_rx_burst(port, queue, mbufs, count) != count)
			return -EIO;
		times->after_ns = traffic_now_ns();
		mend(s, mbufs, count);
		consume(mbufs, count);
	}
	return n;
}

static void drain(uint16_t port, uint16_t queue)
{
	struct rte_ring *ring =
		port < PORTS_MAX && queue < QUEUES_MAX ? port_rings[port].tx[queue] : NULL;
	struct rte_mbuf *m;

	while (ring && !rte_ring_dequeue(ring, (void **)&m))
		rte_pktmbuf_free(m);
}

int64_t traffic_tx(uint16_t port, uint16_t queue, const struct shape *s, uint32_t n, uint32_t burst,
	struct burst_times *times)
{
	struct rte_mbuf *mbufs[TRAFFIC_BURST_MAX];

	for (uint32_t at = 0; at < n; at += burst) {
		uint32_t count = RTE_MIN(burst, n - at);

		if (build(s, at, count, false, mbufs))
			return -ENOMEM;
		times->before_ns = at ? times->before_ns : traffic_now_ns();
		if (rte_eth_tx_burst(port, queue, mbufs, count) != count)
			return -EIO;
		times->after_ns = traffic_now_ns();
		if (s->cut_chain || s->untrue_length || s->no_flag)
			mend(s, mbufs, count); /* only for net_ring, which still has them */
		drain(port, queue);
	}
	return n;
}

static void send_plain(struct job *job)
{
	while (job->done < job->n) {
		struct rte_mbuf *m = shape_plain();

		if (!m)
			continue;
		if (rte_eth_tx_burst(job->port, job->queue, &m, 1) == 1)
			job->done++;
		else
			rte_pktmbuf_free(m);
	}
}

static int send_on_worker(void *arg)
{
	send_plain(arg);
	return 0;
}

static void *send_in_thread(void *arg)
{
	struct job *job = arg;

	pthread_barrier_wait(job->barrier);
	send_plain(job);
	/* No thread ends, and frees its slot for another one, before all have sent. */
	pthread_barrier_wait(job->barrier);
	return NULL;
}

int64_t traffic_blast(uint16_t port, uint16_t queue, unsigned workers, uint64_t n)
{
	struct job jobs[RTE_MAX_LCORE] = {0};
	unsigned lcore, launched = 0;
	int64_t sum = 0;

	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (launched++ == workers)
			break;
		jobs[lcore] = (struct job){.port = port, .queue = queue, .n = n};
		if (rte_eal_remote_launch(send_on_worker, &jobs[lcore], lcore))
			return -EBUSY;
	}
	rte_eal_mp_wait_lcore();
	for (lcore = 0; lcore < RTE_MAX_LCORE; lcore++)
		sum += (int64_t)jobs[lcore].done;
	drain(port, queue);
	return launched < workers ? -ENODEV : sum;
}

int64_t traffic_threads(uint16_t port, uint16_t queue, unsigned threads, uint64_t n)
{
	pthread_t *ids = calloc(threads, sizeof(*ids));
	struct job *jobs = calloc(threads, sizeof(*jobs));
	pthread_barrier_t barrier;
	int64_t sum = 0;

	if (!ids || !jobs || pthread_barrier_init(&barrier, NULL, threads))
		return -ENOMEM;
	for (unsigned i = 0; i < threads; i++) {
		jobs[i] = (struct job){.port = port, .queue = queue, .n = n, .barrier = &barrier};
		if (pthread_create(&ids[i], NULL, send_in_thread, &jobs[i]))
			abort(); /* the barrier would never open */
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum += (int64_t)jobs[i].done;
	}
	pthread_barrier_destroy(&barrier);
	free(ids);
	free(jobs);
	return sum;
}

#define CROWD_MAX 512

static struct {
	pthread_t thread[CROWD_MAX];
	unsigned threads;
	uint16_t port;
	uint32_t round, done, quit; /* atomic */
	uint64_t n;
} crowd;

static void *poll_own_queue(void *arg)
{
	struct job job = {.port = crowd.port, .queue = (uint16_t)(uintptr_t)arg};
	uint32_t round = 0;

	while (!__atomic_load_n(&crowd.quit, __ATOMIC_ACQUIRE)) {
		struct rte_mbuf *m[BURST];

		rte_pktmbuf_free_bulk(m, rte_eth_rx_burst(job.port, job.queue, m, BURST));
		if (__atomic_load_n(&crowd.round, __ATOMIC_ACQUIRE) != round) {
			round++;
			job.n += crowd.n;
			send_plain(&job);
			__atomic_fetch_add(&crowd.done, 1, __ATOMIC_RELEASE);
		}
		sched_yield();
	}
	return NULL;
}

int64_t traffic_crowd(uint16_t port, unsigned threads)
{
	if (crowd.threads || threads > CROWD_MAX)
		return -EINVAL;
	crowd.port = port;
	for (uintptr_t i = 0; i < threads; i++, crowd.threads++) {
		int ret = pthread_create(&crowd.thread[i], NULL, poll_own_queue, (void *)i);

		if (ret)
			return -ret;
	}
	return threads;
}

int64_t traffic_crowd_send(uint64_t n)
{
	uint32_t until = crowd.done + crowd.threads;

	crowd.n = n;
	__atomic_fetch_add(&crowd.round, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&crowd.done, __ATOMIC_ACQUIRE) != until)
		sched_yield();
	return (int64_t)(crowd.threads * n);
}

int64_t traffic_crowd_end(void)
{
	unsigned n = crowd.threads;

	__atomic_store_n(&crowd.quit, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < n; i++)
		pthread_join(crowd.thread[i], NULL);
	memset(&crowd, 0, sizeof(crowd));
	return n;
}

int64_t traffic_poll(uint16_t port, uint16_t queue, uint64_t n)
{
	struct rte_mbuf *mbufs[BURST];
	uint64_t done = 0;

	while (done < n) {
		uint16_t got =
			rte_eth_rx_burst(port, queue, mbufs, RTE_MIN((uint64_t)BURST, n - done));

		rte_pktmbuf_free_bulk(mbufs, got);
		done += got;
	}
	return (int64_t)done;
}

int64_t traffic_idle(uint16_t port, uint16_t queue, uint64_t n)
{
	struct rte_mbuf *mbufs[BURST];

	for (uint64_t i = 0; i < n; i++) {
		if (rte_eth_rx_burst(port, queue, mbufs, BURST))
			return -EIO;
	}
	return (int64_t)n;
}

static int run_loop(void *arg)
{
	struct rte_mbuf *mbufs[BURST];

	while (__atomic_load_n(&loop.running, __ATOMIC_RELAXED)) {
		uint16_t got = rte_eth_rx_burst(loop.from, loop.queue, mbufs, BURST), sent;

		pthread_mutex_lock(&loop.lock); /* traffic_hang() does not unlock it */
		pthread_mutex_unlock(&loop.lock);
		sent = rte_eth_tx_burst(loop.to, loop.queue, mbufs, got);
		rte_pktmbuf_free_bulk(mbufs + sent, got - sent);
		__atomic_store_n(&loop.count, loop.count + sent, __ATOMIC_RELAXED);
		if (loop.second != loop.queue)
			rte_pktmbuf_free_bulk(
				mbufs, rte_eth_rx_burst(loop.from, loop.second, mbufs, BURST));
		if (!got && loop.doze_us)
			rte_delay_us_sleep(loop.doze_us);
	}
	return 0;
}

int traffic_loop(uint16_t from, uint16_t to, uint16_t queue, uint16_t second, unsigned doze_us)
{
	if (loop.running)
		return -EBUSY;
	loop.from = from;
	loop.to = to;
	loop.queue = queue;
	loop.second = second;
	loop.doze_us = doze_us;
	loop.count = 0;
	loop.running = true;
	loop.lcore = rte_get_next_lcore(-1, 1, 0);
	return rte_eal_remote_launch(run_loop, NULL, loop.lcore);
}

int traffic_hang(void)
{
	return -pthread_mutex_lock(&loop.lock);
}

uint64_t traffic_loop_count(void)
{
	return __atomic_load_n(&loop.count, __ATOMIC_RELAXED);
}

int64_t traffic_unloop(void)
{
	if (!loop.running)
		return -ESRCH;
	__atomic_store_n(&loop.running, false, __ATOMIC_RELAXED);
	rte_eal_wait_lcore(loop.lcore);
	return (int64_t)loop.count;
}
