/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_common.h>

#include "common/ipc.h"
#include "common/stats.h"
#include "compat.h"
#include "devices.h"
#include "secondary.h"
#include "teardown.h"

#define STATS_MAX 1024 /* in a part of an eventdev */
#define IDS       64   /* crypto and DMA devices of DPDK's default build */
#define STARTED   2    /* RTE_EVENT_DEV_ATTR_STARTED */
#define PORTS     0    /* RTE_EVENT_DEV_ATTR_PORT_COUNT */
#define QUEUES    1    /* RTE_EVENT_DEV_ATTR_QUEUE_COUNT */
#define NONE      (-1)

/* The libraries are not in all applications, and their headers not in all packages of headers.
 * Prototypes and these parts of structures are the same from 21.11 to 26.07, but for the type of
 * ids. */
struct event_info {
	const char *driver;
	const struct rte_device *device;
	uint64_t later[64];
};

struct event_name {
	char name[64];
};

struct crypto_stats {
	uint64_t enqueued, dequeued, enqueue_errors, dequeue_errors;
};

struct dma_info {
	const char *name;
	uint64_t capabilities;
	uint16_t max_channels, max_descriptors, min_descriptors, max_segments;
	int16_t node;
	uint16_t channels;
	uint64_t later[16];
};

struct dma_stats {
	uint64_t submitted, completed, errors;
};

extern uint8_t rte_event_dev_count(void) __attribute__((weak));
extern int rte_event_dev_attr_get(uint8_t id, uint32_t attribute, uint32_t *value)
	__attribute__((weak));
extern int rte_event_dev_info_get(uint8_t id, struct event_info *info) __attribute__((weak));
extern int rte_event_dev_xstats_names_get(uint8_t id, int mode, uint8_t number,
	struct event_name *names, rt_compat_event_id *ids, unsigned n) __attribute__((weak));
extern int rte_event_dev_xstats_get(uint8_t id, int mode, uint8_t number,
	const rt_compat_event_id *ids, uint64_t *values, unsigned n) __attribute__((weak));

extern unsigned rte_cryptodev_is_valid_dev(uint8_t id) __attribute__((weak));
extern uint16_t rte_cryptodev_queue_pair_count(uint8_t id) __attribute__((weak));
extern int rte_cryptodev_get_qp_status(uint8_t id, uint16_t pair) __attribute__((weak));
extern const char *rte_cryptodev_name_get(uint8_t id) __attribute__((weak));
extern int rte_cryptodev_stats_get(uint8_t id, struct crypto_stats *s) __attribute__((weak));

extern bool rte_dma_is_valid(int16_t id) __attribute__((weak));
extern int rte_dma_info_get(int16_t id, struct dma_info *info) __attribute__((weak));
extern int rte_dma_stats_get(int16_t id, uint16_t channel, struct dma_stats *s)
	__attribute__((weak));

struct walk {
	void (*f)(const struct rt_device_stat *s, void *arg);
	void *arg;
	uint32_t *beyond;
};

static void report(const struct walk *w, struct rt_device_stat *s, const char *const *names,
	const uint64_t *values, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		s->name = names[i];
		s->value = values[i];
		w->f(s, w->arg);
	}
}

/* ---- event devices */

static void read_event_part(
	const struct walk *w, struct rt_device_stat *s, enum rt_device_part part, uint16_t number)
{
	static struct event_name names[STATS_MAX]; /* control lock */
	static rt_compat_event_id ids[STATS_MAX];
	static uint64_t values[STATS_MAX];
	uint8_t id = (uint8_t)s->id;
	int n = rte_event_dev_xstats_names_get(id, part, (uint8_t)number, names, ids, STATS_MAX);

	if (n > STATS_MAX)
		*w->beyond += (uint32_t)n;
	if (n <= 0 || n > STATS_MAX ||
		rte_event_dev_xstats_get(id, part, (uint8_t)number, ids, values, (unsigned)n) != n)
		return;
	s->part = part;
	s->number = number;
	for (int i = 0; i < n; i++) {
		const char *name = names[i].name;

		names[i].name[sizeof(names[i].name) - 1] = '\0';
		report(w, s, &name, &values[i], 1);
	}
}

/* Drivers of virtual devices do not name the device before 23.11. */
static const char *event_name(const struct event_info *info)
{
	const char *name = info->device ? rt_compat_device_name(info->device) : NULL;

	return name ? name : info->driver ? info->driver : "";
}

/* False: there is no device of this number. */
static bool read_event(const struct walk *w, uint8_t id)
{
	struct rt_device_stat s = {.kind = RT_DEVICE_EVENT, .id = id};
	uint32_t started = 0, ports = 0, queues = 0;
	struct event_info info = {0};

	if (rte_event_dev_attr_get(id, STARTED, &started))
		return false;
	/* A driver may free its statistics when the device stops. */
	if (!started || rte_event_dev_attr_get(id, PORTS, &ports) ||
		rte_event_dev_attr_get(id, QUEUES, &queues) || rte_event_dev_info_get(id, &info))
		return true;
	s.device = event_name(&info);
	read_event_part(w, &s, RT_PART_DEVICE, 0);
	for (uint32_t i = 0; i < RTE_MIN(ports, (uint32_t)UINT8_MAX); i++)
		read_event_part(w, &s, RT_PART_PORT, (uint16_t)i);
	for (uint32_t i = 0; i < RTE_MIN(queues, (uint32_t)UINT8_MAX); i++)
		read_event_part(w, &s, RT_PART_QUEUE, (uint16_t)i);
	return true;
}

/* The library logs an error for a number that is not in use, as a device before has been removed:
 * once. */
static void read_events(const struct walk *w)
{
	static int refused = NONE; /* number of devices, when one was */
	int count;

	if (!rte_event_dev_count || !rte_event_dev_attr_get || !rte_event_dev_info_get ||
		!rte_event_dev_xstats_names_get || !rte_event_dev_xstats_get)
		return;
	count = rte_event_dev_count();
	if (count != refused)
		refused = NONE;
	for (int id = 0; id < count && refused == NONE; id++)
		if (!read_event(w, (uint8_t)id))
			refused = count;
}

/* ---- crypto devices */

/* Drivers add up the counters of all queue pairs, without a check that each is set up. */
static bool has_queues(uint8_t id)
{
	uint16_t count = rte_cryptodev_queue_pair_count(id);

	for (uint16_t i = 0; i < count; i++)
		if (rte_cryptodev_get_qp_status(id, i) != 1)
			return false;
	return count > 0;
}

static void read_cryptos(const struct walk *w)
{
	/* DPDK's telemetry has the same names. */
	static const char *const names[] = {
		"enqueued_count", "dequeued_count", "enqueue_err_count", "dequeue_err_count"};

	if (!rte_cryptodev_is_valid_dev || !rte_cryptodev_queue_pair_count ||
		!rte_cryptodev_get_qp_status || !rte_cryptodev_name_get || !rte_cryptodev_stats_get)
		return;
	for (uint8_t id = 0; id < IDS; id++) {
		struct rt_device_stat s = {.kind = RT_DEVICE_CRYPTO, .id = id};
		struct crypto_stats c;

		if (!rte_cryptodev_is_valid_dev(id) || !has_queues(id) ||
			rte_cryptodev_stats_get(id, &c))
			continue;
		s.device = rte_cryptodev_name_get(id);
		if (s.device)
			report(w, &s, names,
				(const uint64_t[]){
					c.enqueued, c.dequeued, c.enqueue_errors, c.dequeue_errors},
				RTE_DIM(names));
	}
}

/* ---- DMA devices */

static void read_dma(const struct walk *w, int16_t id)
{
	static const char *const names[] = {"submitted", "completed", "errors"};
	struct rt_device_stat s = {
		.kind = RT_DEVICE_DMA, .part = RT_PART_CHANNEL, .id = (uint16_t)id};
	struct dma_info info = {0};
	struct dma_stats d;

	if (rte_dma_info_get(id, &info) || !info.name)
		return;
	s.device = info.name;
	for (s.number = 0; s.number < info.channels; s.number++)
		if (!rte_dma_stats_get(id, s.number, &d))
			report(w, &s, names, (const uint64_t[]){d.submitted, d.completed, d.errors},
				RTE_DIM(names));
}

static void read_dmas(const struct walk *w)
{
	if (!rte_dma_is_valid || !rte_dma_info_get || !rte_dma_stats_get)
		return;
	for (int16_t id = 0; id < IDS; id++)
		if (rte_dma_is_valid(id))
			read_dma(w, id);
}

bool rt_devices_each(
	void (*f)(const struct rt_device_stat *s, void *arg), void *arg, uint32_t *beyond)
{
	const struct walk w = {f, arg, beyond};

	*beyond = 0;
	if (rt_is_secondary() || rt_teardown_begun())
		return false;
	read_events(&w);
	read_cryptos(&w);
	read_dmas(&w);
	return true;
}
