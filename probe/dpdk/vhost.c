/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_log.h>

#include "common/ipc.h"
#include "imports.h"
#include "ports.h"
#include "probe/above.h"
#include "vhost.h"

#define PATH_SIZE 108 /* as in struct sockaddr_un */
#define IMPORTS   6

/* Not in all applications, and not in all packages of headers. Their prototypes are the same from
 * 21.11 to 26.07, but for that of submit. */
extern uint16_t rte_vhost_dequeue_burst(int vid, uint16_t queue, struct rte_mempool *pool,
	struct rte_mbuf **pkts, uint16_t n) __attribute__((weak));
extern uint16_t rte_vhost_enqueue_burst(int vid, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
	__attribute__((weak));
extern uint16_t rte_vhost_async_try_dequeue_burst(int vid, uint16_t queue, struct rte_mempool *pool,
	struct rte_mbuf **pkts, uint16_t n, int *flying, int16_t dma, uint16_t vchan)
	__attribute__((weak));
extern uint16_t rte_vhost_submit_enqueue_burst(int vid, uint16_t queue, struct rte_mbuf **pkts,
	uint16_t n, uintptr_t dma, uintptr_t vchan) __attribute__((weak));
extern int rte_vhost_get_ifname(int vid, char *buf, size_t len) __attribute__((weak));
extern uint16_t rte_vhost_get_vring_num(int vid) __attribute__((weak));
extern int rte_vhost_driver_unregister(const char *path) __attribute__((weak));

enum state { EMPTY, ALIVE, GONE };

static struct port {
	uint32_t state; /* released after the path */
	uint32_t pairs; /* pairs of virtqueues */
	uint32_t round; /* in which it was polled last, or has gone */
	char path[PATH_SIZE];
} ports[RT_VHOST_PORTS];

struct rt_vhost_calls rt_vhost_calls;
uint16_t rt_vhost_ids[RT_VHOST_DEVICES];

static int (*get_ifname)(int vid, char *buf, size_t len);
static int (*driver_unregister)(const char *path);
static uint32_t claiming; /* a thread gives a port to a path; atomic */
static uint32_t current_round = 1;
static uint32_t top;
static uint64_t loads;
static uint32_t on; /* calls are diverted; atomic */
static bool again;

static uint16_t id_of(const struct port *p)
{
	return (uint16_t)(RTE_MAX_ETHPORTS + (p - ports));
}

static enum state state_of(const struct port *p)
{
	return rt_load_acquire(&p->state); /* pairs with the release in take() */
}

static struct port *find(const char *path)
{
	for (struct port *p = ports; p < ports + rt_load(&top); p++) {
		if (state_of(p) != EMPTY && !strcmp(p->path, path))
			return p;
	}
	return NULL;
}

/* The control thread has noticed that a port has gone within a round. Of these, the one that has
 * been gone for longest. */
static struct port *find_free(void)
{
	uint32_t now = rt_load(&current_round), longest = 1;
	struct port *found = NULL;

	for (struct port *p = ports; p < ports + RT_VHOST_PORTS; p++) {
		uint32_t since = now - rt_load(&p->round);

		if (state_of(p) == EMPTY)
			return p;
		if (state_of(p) == GONE && since > longest) {
			longest = since;
			found = p;
		}
	}
	return found;
}

static struct port *take(const char *path)
{
	struct port *p = find(path);

	if (!p) {
		p = find_free();
		if (!p)
			return NULL;
		memcpy(p->path, path, PATH_SIZE);
	}
	rt_store(&p->round, rt_load(&current_round));
	rt_store_release(&p->state, ALIVE);
	if (rt_load(&top) <= (uint32_t)(p - ports))
		rt_store(&top, (uint32_t)(p - ports) + 1);
	return p;
}

/* One thread at a time; another one tries again at its next poll. Where no port is free, all wait
 * for the next round. */
static struct port *claim(int vid, const char *path)
{
	uint32_t no = 0;
	struct port *p;

	if (!rt_cas(&claiming, &no, 1))
		return NULL;
	p = take(path);
	if (!p)
		rt_store(&rt_vhost_ids[vid], RT_VHOST_NONE);
	rt_store_release(&claiming, 0);
	return p;
}

uint16_t rt_vhost_resolve(int vid)
{
	uint32_t pairs = ((uint32_t)rte_vhost_get_vring_num(vid) + 1) / 2;
	char path[PATH_SIZE] = "";
	struct port *p;

	if (get_ifname(vid, path, sizeof(path)))
		return RT_VHOST_NONE;
	path[PATH_SIZE - 1] = 0;
	p = find(path);
	if (!p || state_of(p) == GONE)
		p = claim(vid, path);
	if (!p)
		return RT_VHOST_NONE;
	rt_store(&p->pairs, pairs < RT_VHOST_RINGS / 2 ? pairs : RT_VHOST_RINGS / 2);
	rt_store(&p->round, rt_load(&current_round));
	/* Pairs with the acquire in hook_of(), vhost_burst.c. */
	rt_store_release(&rt_vhost_ids[vid], id_of(p));
	return id_of(p);
}

/* The application may ask for the name of a device that has just got this number: Open
 * vSwitch asks before it polls a new one. */
static int ifname_called(int vid, char *buf, size_t len)
{
	if (vid >= 0 && vid < RT_VHOST_DEVICES)
		rt_store(&rt_vhost_ids[vid], 0);
	return get_ifname(vid, buf, len);
}

static void forget_ids(uint16_t id)
{
	for (unsigned i = 0; i < RT_VHOST_DEVICES; i++) {
		if (!id || rt_load(&rt_vhost_ids[i]) == id)
			rt_store(&rt_vhost_ids[i], 0);
	}
}

/* No thread polls its device any more, or none through us. */
static void set_gone(struct port *p)
{
	uint32_t alive = ALIVE;

	if (state_of(p) != ALIVE)
		return;
	rt_store(&p->round, rt_load(&current_round)); /* before another thread may take it */
	if (!rt_cas(&p->state, &alive, GONE))
		return;
	forget_ids(id_of(p));
	rt_port_vhost_changed(id_of(p));
}

static void set_all_gone(void)
{
	for (struct port *p = ports; p < ports + RT_VHOST_PORTS; p++)
		set_gone(p);
	forget_ids(0);
}

/* In a thread of the application, which waits in here until no device of the path is left. */
static int unregister_called(const char *path)
{
	int ret = driver_unregister(path);
	char cut[PATH_SIZE];
	struct port *p;

	snprintf(cut, sizeof(cut), "%s", path ? path : "");
	p = find(cut);
	if (!ret && p)
		set_gone(p);
	return ret;
}

static const struct rt_import *imports(unsigned i)
{
	static struct rt_import list[IMPORTS];

	if (!list[0].name) {
		list[1] = (struct rt_import){"rte_vhost_enqueue_burst",
			(uintptr_t)rte_vhost_enqueue_burst, (uintptr_t)rt_vhost_enqueue};
		list[2] = (struct rt_import){"rte_vhost_get_ifname",
			(uintptr_t)rte_vhost_get_ifname, (uintptr_t)ifname_called};
		list[3] = (struct rt_import){"rte_vhost_driver_unregister",
			(uintptr_t)rte_vhost_driver_unregister, (uintptr_t)unregister_called};
		list[4] = (struct rt_import){"rte_vhost_async_try_dequeue_burst",
			(uintptr_t)rte_vhost_async_try_dequeue_burst,
			(uintptr_t)rt_vhost_try_dequeue};
		list[5] = (struct rt_import){"rte_vhost_submit_enqueue_burst",
			(uintptr_t)rte_vhost_submit_enqueue_burst, (uintptr_t)rt_vhost_submit};
		list[0] = (struct rt_import){"rte_vhost_dequeue_burst",
			(uintptr_t)rte_vhost_dequeue_burst, (uintptr_t)rt_vhost_dequeue};
	}
	return &list[i];
}

static int divert(void)
{
	const struct rt_import *p;
	int slots = 0, n;

	loads = rt_imports_loads();
	/* The names first: an application requests a device's name before it polls it. */
	for (unsigned i = 0; i < IMPORTS; i++) {
		p = imports((i + 2) % IMPORTS);
		if (!p->theirs)
			continue;
		n = rt_imports_divert(p);
		if (n < 0)
			return n;
		slots += n;
	}
	return slots;
}

static void restore(void)
{
	for (unsigned i = 0; i < IMPORTS; i++) {
		if (imports(i)->theirs)
			(void)rt_imports_restore(imports(i));
	}
}

void rt_vhost_begin(void)
{
	int slots;

	if (!rte_vhost_dequeue_burst || !rte_vhost_enqueue_burst || !rte_vhost_get_ifname ||
		!rte_vhost_get_vring_num || !rte_vhost_driver_unregister)
		return;
	/* Kept: these pointers may be slots that are diverted, if the probe is linked in. */
	if (!rt_vhost_calls.dequeue) {
		(void)imports(0);
		get_ifname = rte_vhost_get_ifname;
		driver_unregister = rte_vhost_driver_unregister;
		rt_vhost_calls.enqueue = rte_vhost_enqueue_burst;
		rt_vhost_calls.try_dequeue = rte_vhost_async_try_dequeue_burst;
		rt_vhost_calls.submit = rte_vhost_submit_enqueue_burst;
		rt_vhost_calls.dequeue = rte_vhost_dequeue_burst;
	}
	/* A thread that was inside a diverted call at the end may have taken a port since. */
	set_all_gone();
	rt_store(&current_round,
		current_round + 2); /* no session is left that has not noticed what has gone */
	slots = divert();
	if (slots < 0) /* a security module or a seccomp filter */
		rte_log(RTE_LOG_WARNING, RTE_LOGTYPE_EAL,
			"ringtap: vhost-user ports are not visible: cannot divert calls: %s\n",
			strerror(-slots));
	again = slots > 0;
	rt_store(&on, again);
	if (!again)
		restore();
}

void rt_vhost_end(void)
{
	if (!rt_vhost_is_on())
		return;
	rt_store(&on, 0);
	restore();
	set_all_gone();
}

/* A library that is being loaded, or whose slot its first call is filling just now, may have
 * overwritten the slot: hence once more after each time. */
void rt_vhost_tick(void)
{
	bool loaded;

	if (!rt_vhost_is_on())
		return;
	loaded = rt_imports_loads() != loads;
	if (loaded || again)
		(void)divert();
	again = loaded;
	rt_store(&current_round, current_round + 1);
	forget_ids(0);
}

bool rt_vhost_is_on(void)
{
	return rt_load(&on);
}

uint32_t rt_vhost_top(void)
{
	return rt_load(&top);
}

static struct port *port_of(uint16_t id)
{
	return &ports[id - RTE_MAX_ETHPORTS];
}

bool rt_vhost_alive(uint16_t id)
{
	return rt_vhost_is_on() && state_of(port_of(id)) == ALIVE;
}

/* The end of the path, if it is longer. */
int rt_vhost_name(uint16_t id, char out[RT_NAME_LEN])
{
	const struct port *p = port_of(id);
	size_t len;

	if (!rt_vhost_alive(id))
		return -ENODEV;
	len = strnlen(p->path, PATH_SIZE - 1);
	rt_str_set(out, RT_NAME_LEN, p->path + (len < RT_NAME_LEN ? 0 : len - (RT_NAME_LEN - 1)));
	return 0;
}

int rt_vhost_queues(uint16_t id, uint32_t out[2])
{
	out[RT_DIR_RX] = out[RT_DIR_TX] = rt_load(&port_of(id)->pairs);
	return rt_vhost_alive(id) ? 0 : -ENODEV;
}

int rt_vhost_describe(uint16_t id, struct rt_msg_port *out)
{
	const struct port *p = port_of(id);

	*out = (struct rt_msg_port){.port_id = id,
		.nb_rx_queues = rt_load(&p->pairs),
		.nb_tx_queues = rt_load(&p->pairs),
		.link_up = current_round - rt_load(&p->round) <= 1};
	rt_str_set(out->driver, sizeof(out->driver), RT_VHOST_DRIVER);
	return rt_vhost_name(id, out->name);
}
