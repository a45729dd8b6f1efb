/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's and the drivers' options for ringtap-host. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "base/util.h"

/* ringtap-host takes frames to lie one after the other, so they must fill blocks, which are whole
 * pages, and a power of two of them in the kernel. */
#define BLOCK        65536u
#define FRAME_LOW    2048u
#define FRAME_SMALL  32768u /* a power of two up to here, then whole pages */
#define BLOCK_TOP    (2u << 20)
#define PAGE         4096u
#define MERGED       65536u /* the kernel's packets, without the link layer; BIG TCP has longer ones */
#define HEADER       66u    /* the kernel's header before the packet */
#define ROOM_MAX     16384u /* room of an mbuf: longer packets take several */
#define LINK         22u    /* Ethernet and two tags, around the MTU */
#define XDP_ROOM     2048u
#define XDP_MBUFS    (3 * 4096u) /* the driver fills its rings with 4096, and frees late */
#define PACKET_MBUFS 512u        /* are free again after each burst */
#define POOL_MBUFS   1024u       /* in caches */
#define MBUF_EXTRA   512u        /* header, headroom and alignment */
#define EAL_BYTES    (48u << 20) /* all the rest */

static int add(struct host_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int add(struct host_args *a, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = vasprintf(&a->argv[a->argc], format, ap);
	va_end(ap);
	if (ret < 0) {
		a->argv[a->argc] = NULL;
		return -ENOMEM;
	}
	a->argc++;
	return 0;
}

static uint32_t queues_of(const struct host_config *h, unsigned i)
{
	if (h->queues)
		return h->queues;
	return h->driver == HOST_AF_XDP ? h->devs[i].queues : 1;
}

static uint32_t most_queues(const struct host_config *h)
{
	uint32_t most = 1;

	for (unsigned i = 0; i < h->iface_count; i++)
		most = queues_of(h, i) > most ? queues_of(h, i) : most;
	return most;
}

static uint32_t frame_of(const struct host_config *h, unsigned i)
{
	const struct netdev *d = &h->devs[i];
	uint32_t longest = (d->merges && d->mtu < MERGED ? MERGED : d->mtu) + LINK;
	uint32_t wanted = (h->frame ? h->frame : longest) + HEADER;
	uint32_t frame = FRAME_LOW;

	if (wanted > FRAME_SMALL)
		return (wanted + PAGE - 1) / PAGE * PAGE;
	while (frame < wanted)
		frame *= 2;
	return frame;
}

static uint32_t largest_frame(const struct host_config *h)
{
	uint32_t most = 0;

	for (unsigned i = 0; i < h->iface_count; i++)
		most = frame_of(h, i) > most ? frame_of(h, i) : most;
	return most;
}

static int add_iface(const struct host_config *h, struct host_args *a, unsigned i)
{
	const char *name = h->ifaces[i];
	uint32_t frame = frame_of(h, i);
	uint32_t block = frame > FRAME_SMALL ? BLOCK_TOP / frame * frame : BLOCK;
	uint64_t blocks = h->buffer > block ? h->buffer / block : 1;

	if (h->driver == HOST_AF_XDP)
		return add(a, "%s=net_af_xdp_%s,iface=%s,queue_count=%u", name, name, name,
			queues_of(h, i));
	return add(a, "%s=packet,link=%u,queues=%u,framesz=%u,blocksz=%u,framecnt=%" PRIu64, name,
		h->devs[i].linktype, queues_of(h, i), frame, block, blocks * (block / frame));
}

/* Lcore 0 only watches; all that we may use is good for it, and for a thread with no CPU named. */
static int add_lcores(const struct host_config *h, struct host_args *a)
{
	char text[16 * HOST_CPUS_MAX + 8192];
	char all[8192];
	cpu_set_t allowed;
	size_t at = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &allowed))
			at += (size_t)snprintf(
				all + at, sizeof(all) - at, "%s%d", at ? "," : "", c);
	at = (size_t)snprintf(text, sizeof(text), h->cpu_count ? "0@(%s)" : "(0,1)@(%s)", all);
	for (unsigned i = 0; i < h->cpu_count; i++)
		at += (size_t)snprintf(
			text + at, sizeof(text) - at, ",%u@%u", i + 1, h->cpu_list[i]);
	return add(a, "--lcores") ?: add(a, "%s", text);
}

static uint32_t data_room(const struct host_config *h)
{
	uint32_t frame = largest_frame(h);

	return h->driver == HOST_AF_XDP ? XDP_ROOM : frame < ROOM_MAX ? frame : ROOM_MAX;
}

/* Per queue. */
static uint32_t mbufs(const struct host_config *h)
{
	return h->driver == HOST_AF_XDP ? XDP_MBUFS : PACKET_MBUFS;
}

uint64_t host_memory(const struct host_config *h)
{
	uint64_t count = (uint64_t)mbufs(h) * most_queues(h) * h->iface_count + POOL_MBUFS;

	return h->memory ? h->memory : count * (data_room(h) + MBUF_EXTRA) + EAL_BYTES;
}

static int add_eal(const struct host_config *h, struct host_args *a)
{
	uint64_t megabytes = (host_memory(h) + (1 << 20) - 1) >> 20;
	int ret = add(a, "ringtap-host");

	/* Unlinked at once, so that they are free again however it ends. */
	if (!ret)
		ret = add(a, "%s", h->huge_pages ? "--huge-unlink" : "--no-huge");
	if (!ret && !h->verbose)
		ret = add(a, "--log-level=*:emergency");
	if (!ret)
		ret = add(a, "-m") ?: add(a, "%" PRIu64, megabytes);
	if (!ret)
		ret = add(a, "--no-pci") ?: add(a, "--file-prefix") ?: add(a, "%s", h->own_name);
	return ret ? ret : add_lcores(h, a);
}

int host_args(const struct host_config *h, struct host_args *a)
{
	int ret = add_eal(h, a);

	if (!ret)
		ret = add(a, "--") ?: add(a, "-q%u", most_queues(h));
	if (!ret)
		ret = add(a, "-d%u", data_room(h)) ?: add(a, "-n%u", mbufs(h));
	if (!ret && h->busy_poll)
		ret = add(a, "-b");
	if (!ret && h->verbose)
		ret = add(a, "-v");
	if (!ret && !h->no_promiscuous)
		ret = add(a, "-p");
	for (unsigned i = 0; i < h->iface_count && !ret; i++)
		ret = add_iface(h, a, i);
	if (ret)
		message_print("host: starting: %s", strerror(-ret));
	return ret;
}

void host_args_free(struct host_args *a)
{
	for (int i = 0; i < a->argc; i++)
		free(a->argv[i]);
}
