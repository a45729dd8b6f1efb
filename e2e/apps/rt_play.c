/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that executes commands: one on each line of standard input, an answer `ok …`
 * or `error …` on standard output. The main thread sends and receives itself, so between two
 * commands it is a thread that has stopped polling.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include "rt_event.h"
#include "rt_ports.h"
#include "rt_shape.h"
#include "rt_traffic.h"
#ifdef LINK_IN
#include "ringtap/probe.h"
#endif

#define WORDS_MAX  24
#define MBUF_COUNT 4095

static bool cleaned_up, alarm_on, alarm_runs;

static void answer(int64_t rc)
{
	if (rc < 0)
		printf("error %s\n", strerror((int)-rc));
	else
		printf("ok %lld\n", (long long)rc);
}

static uint16_t number(char **words, unsigned i)
{
	return words[i] ? atoi(words[i]) : 0;
}

static void do_burst(char **words, bool rx)
{
	uint32_t n = shape_arg(words, "n", 1);
	uint32_t burst = shape_arg(words, "burst", 32);
	struct burst_times times = {0};
	struct shape shape;
	int64_t rc = -EINVAL;

	if (burst && burst <= TRAFFIC_BURST_MAX && shape_parse(words, &shape)) {
		rc = (rx ? traffic_rx : traffic_tx)(
			number(words, 1), number(words, 2), &shape, n, burst, &times);
		free(shape.bytes);
	}
	if (rc < 0)
		answer(rc);
	else
		printf("ok %lld %llu %llu\n", (long long)rc, (unsigned long long)times.before_ns,
			(unsigned long long)times.after_ns);
}

static void do_rx(char **words)
{
	do_burst(words, true);
}

static void do_tx(char **words)
{
	do_burst(words, false);
}

static void do_hold(char **words)
{
	answer(traffic_hold(number(words, 1)));
}

static void do_release(char **words)
{
	answer(traffic_release(number(words, 1)));
}

static void do_take_back(char **words)
{
	answer(traffic_take_back(number(words, 1)));
}

static void do_blast(char **words)
{
	answer(traffic_blast(number(words, 1), number(words, 2), shape_arg(words, "workers", 1),
		shape_arg(words, "n", 1)));
}

static void do_threads(char **words)
{
	answer(traffic_threads(number(words, 1), number(words, 2), shape_arg(words, "count", 1),
		shape_arg(words, "n", 1)));
}

static void do_crowd(char **words)
{
	answer(traffic_crowd(number(words, 1), number(words, 2)));
}

static void do_crowd_send(char **words)
{
	answer(traffic_crowd_send(number(words, 1)));
}

static void do_crowd_end(char **words)
{
	answer(traffic_crowd_end());
}

static void do_poll(char **words)
{
	answer(traffic_poll(number(words, 1), number(words, 2), shape_arg(words, "n", 1)));
}

static void do_idle(char **words)
{
	answer(traffic_idle(number(words, 1), number(words, 2), shape_arg(words, "n", 1)));
}

static void do_loop(char **words)
{
	uint16_t queue = shape_arg(words, "queue", 0);

	answer(traffic_loop(number(words, 1), number(words, 2), queue,
		shape_arg(words, "second", queue), shape_arg(words, "doze", 0)));
}

static void do_unloop(char **words)
{
	answer(traffic_unloop());
}

static void do_hang(char **words)
{
	answer(traffic_hang());
}

static void do_count(char **words)
{
	answer((int64_t)traffic_loop_count());
}

static void do_ring(char **words)
{
	answer(port_make_ring(words[1], shape_arg(words, "rxq", 1), shape_arg(words, "txq", 1)));
}

static void do_plug(char **words)
{
	const char *args = shape_text(words, "args");

	answer(port_plug(words[1], args ? args : "", shape_arg(words, "rxq", 1),
		shape_arg(words, "txq", 1)));
}

static void do_unplug(char **words)
{
	answer(port_unplug(words[1]));
}

static void do_stop(char **words)
{
	answer(rte_eth_dev_stop(number(words, 1)));
}

static void do_start(char **words)
{
	answer(rte_eth_dev_start(number(words, 1)));
}

static void do_reconf(char **words)
{
	answer(port_reconfigure(
		number(words, 1), shape_arg(words, "rxq", 1), shape_arg(words, "txq", 1)));
}

static void do_callbacks(char **words)
{
	answer(port_callbacks(number(words, 1)));
}

/* mlockall(), as in applications that avoid page faults: later mappings are populated at once. */
static void do_lock(char **words)
{
	answer(mlockall(MCL_FUTURE) ? -errno : 0);
}

static void do_now(char **words)
{
	answer((int64_t)traffic_now_ns());
}

/* Ends DPDK; the program continues. */
static void do_cleanup(char **words)
{
	if (!cleaned_up) {
		cleaned_up = true;
		answer(rte_eal_cleanup());
	} else {
		answer(-EALREADY);
	}
}

static void do_exit(char **words)
{
	exit(number(words, 1));
}

static void do_abort(char **words)
{
	(void)words;
	abort();
}

static void do_crash(char **words)
{
	(void)words;
	raise(SIGSEGV);
}

/* Runs in EAL's interrupt thread. */
static void on_alarm(void *arg)
{
	(void)arg;
	__atomic_store_n(&alarm_runs, true, __ATOMIC_RELAXED);
	while (__atomic_load_n(&alarm_on, __ATOMIC_RELAXED))
		rte_pause();
}

static void do_alarm(char **words)
{
	bool on = number(words, 1) != 0;
	int rc = 0;

	__atomic_store_n(&alarm_on, on, __ATOMIC_RELAXED);
	if (on)
		rc = rte_eal_alarm_set(1, on_alarm, NULL);
	while (on && !rc && !__atomic_load_n(&alarm_runs, __ATOMIC_RELAXED))
		rte_pause();
	answer(rc);
}

/* Buffers that never come back. */
static void do_leak(char **words)
{
	struct rte_mempool *pool = rte_mempool_lookup(words[1]);
	unsigned n = (unsigned)atoi(words[2]), got = 0;
	void *object;

	while (pool && got < n && !rte_mempool_get(pool, &object))
		got++;
	answer(pool ? (int64_t)got : -ENOENT);
}

/* Fills N rings of one name and frees them, one after the other. */
static void do_rings(char **words)
{
	void *objects[40] = {0};
	struct rte_ring *r;
	int64_t n = 0;

	for (; n < number(words, 1); n++) {
		r = rte_ring_create("come and gone", 64, SOCKET_ID_ANY, 0);
		if (!r || !rte_ring_enqueue_bulk(r, objects, RTE_DIM(objects), NULL))
			break;
		rte_ring_free(r);
	}
	answer(n);
}

static void do_event(char **words)
{
	answer(event_pass(words[1]));
}

static void do_event_map(char **words)
{
	answer(event_map(words[1]));
}

static void do_event_later(char **words)
{
	(void)words;
	answer(event_later());
}

static void do_event_go(char **words)
{
	(void)words;
	answer(event_go());
}

#ifdef LINK_IN
static void do_probe_start(char **words)
{
	answer(ringtap_probe_start());
}

static void do_probe_stop(char **words)
{
	ringtap_probe_stop();
	answer(0);
}
#endif

static const struct {
	const char *name;
	unsigned words; /* minimum, with the name */
	void (*run)(char **words);
} commands[] = {
	{"rx", 3, do_rx},     /* PORT QUEUE [n= burst= len= seg= seq= vlan= qinq= hash= hex=] */
	{"tx", 3, do_tx},     /* the same */
	{"hold", 2, do_hold}, /* 1: rx keeps what it receives; 0: frees it */
	{"release", 2, do_release},       /* N */
	{"take_back", 2, do_take_back},   /* N */
	{"blast", 3, do_blast},           /* PORT QUEUE [workers= n=] */
	{"threads", 3, do_threads},       /* PORT QUEUE [count= n=] */
	{"crowd", 3, do_crowd},           /* PORT THREADS */
	{"crowd_send", 2, do_crowd_send}, /* N */
	{"crowd_end", 1, do_crowd_end},
	{"poll", 3, do_poll}, /* PORT QUEUE [n=] */
	{"idle", 3, do_idle}, /* PORT QUEUE [n=] */
	{"loop", 3, do_loop}, /* FROM TO [queue= second= doze=] */
	{"unloop", 1, do_unloop},
	{"hang", 1, do_hang},
	{"count", 1, do_count},
	{"ring", 2, do_ring},           /* NAME [rxq= txq=] */
	{"plug", 2, do_plug},           /* NAME [args= rxq= txq=] */
	{"unplug", 2, do_unplug},       /* NAME */
	{"stop", 2, do_stop},           /* PORT */
	{"start", 2, do_start},         /* PORT */
	{"reconf", 2, do_reconf},       /* PORT [rxq= txq=] */
	{"callbacks", 2, do_callbacks}, /* PORT */
	{"leak", 3, do_leak},           /* POOL N */
	{"rings", 2, do_rings},         /* N */
	{"alarm", 2, do_alarm},         /* 1: the interrupt thread is busy; 0: no more */
	{"lock", 1, do_lock},
	{"now", 1, do_now},
	{"cleanup", 1, do_cleanup},
	{"exit", 2, do_exit}, /* STATUS */
	{"abort", 1, do_abort},
	{"crash", 1, do_crash},         /* by SIGSEGV */
	{"event", 2, do_event},         /* program|LIBRARY */
	{"event_map", 2, do_event_map}, /* LIBRARY */
	{"event_later", 1, do_event_later},
	{"event_go", 1, do_event_go},
#ifdef LINK_IN
	{"probe_start", 1, do_probe_start},
	{"probe_stop", 1, do_probe_stop},
#endif
};

static void execute(char *line)
{
	char *words[WORDS_MAX + 1] = {0};
	unsigned n = 0;

	for (char *w = strtok(line, " \n"); w && n < WORDS_MAX; w = strtok(NULL, " \n"))
		words[n++] = w;
	for (unsigned i = 0; n && i < RTE_DIM(commands); i++) {
		if (strcmp(commands[i].name, words[0]) || n < commands[i].words)
			continue;
		commands[i].run(words);
		return;
	}
	puts("error no such command");
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t size = 0;

	setlinebuf(stdout);
	if (rte_eal_init(argc, argv) < 0 || !shape_init(MBUF_COUNT)) {
		fputs("rt_play: EAL or its memory is not to be had\n", stderr);
		return 1;
	}
	puts("ready");
	while (getline(&line, &size, stdin) > 0 && strcmp(line, "quit\n"))
		execute(line);
	free(line);
	return !cleaned_up && rte_eal_cleanup() ? 1 : 0;
}
