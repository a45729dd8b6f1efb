/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet sockets with mapped buffers: TPACKET_V2 of Documentation/networking/packet_mmap.rst. Not
 * DPDK's net_af_packet: its fanout always defragments, and it drops what the kernel says of a
 * packet's time, tags, length and direction. Not TPACKET_V3: it hands over whole blocks only, which
 * makes packets milliseconds late, and merging by time waits for them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sockets.h"
#include "link.h"

bool sockets_wanted(const struct port *p)
{
	size_t len = sizeof(PACKET_DEVICE) - 1;

	return !strncmp(p->vdev, PACKET_DEVICE, len) && p->vdev[len] == ',';
}

/* The number behind a key in name,key=value,...; 0: there is none. */
static uint32_t number(const char *vdev, const char *key)
{
	const char *at = strstr(vdev, key);

	return at ? (uint32_t)strtoul(at + strlen(key), NULL, 10) : 0;
}

static int set(int fd, int option, const void *value, size_t len)
{
	return setsockopt(fd, SOL_PACKET, option, value, (socklen_t)len) ? -errno : 0;
}

static int map_buffer(struct port *p, int fd, const struct tpacket_req *r)
{
	const int version = TPACKET_V2;
	void *frames;
	int ret = set(fd, PACKET_VERSION, &version, sizeof(version));

	if (!ret)
		ret = set(fd, PACKET_RX_RING, r, sizeof(*r));
	if (ret)
		return ret;
	frames = mmap(NULL, (size_t)r->tp_block_size * r->tp_block_nr, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, fd, 0);
	if (frames == MAP_FAILED)
		return -errno;
	p->frames[p->socket_count - 1] = frames;
	return 0;
}

/* Spreads flows over the sockets. The first one's group has the number that the kernel gives it,
 * as another process may use any other. */
static int join(const struct port *p, int fd, uint32_t *group)
{
	const uint32_t kind = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_ROLLOVER;
	uint32_t value = *group | kind << 16;
	socklen_t len = sizeof(value);
	int ret;

	if (p->queues == 1)
		return 0;
	if (p->socket_count == 1)
		value = (kind | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	ret = set(fd, PACKET_FANOUT, &value, sizeof(value));
	if (ret || p->socket_count > 1)
		return ret;
	if (getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &value, &len))
		return -errno;
	*group = value & UINT16_MAX;
	return 0;
}

static int open_one(struct port *p, const struct tpacket_req *r, uint32_t *group)
{
	struct sockaddr_ll a = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)p->ifindex};
	/* Protocol 0: no packet comes before there is a buffer. */
	int fd = socket(
		AF_PACKET, (link_is_cooked(p->linktype) ? SOCK_DGRAM : SOCK_RAW) | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	p->sockets[p->socket_count++] = fd;
	ret = map_buffer(p, fd, r);
	if (!ret && bind(fd, (const struct sockaddr *)&a, sizeof(a)))
		ret = -errno;
	return ret ? ret : join(p, fd, group);
}

int sockets_open(struct port *p)
{
	struct tpacket_req r = {.tp_frame_size = number(p->vdev, ",framesz="),
		.tp_block_size = number(p->vdev, ",blocksz="),
		.tp_frame_nr = number(p->vdev, ",framecnt=")};
	uint32_t group = 0;
	int ret = 0;

	p->queues = (uint16_t)number(p->vdev, ",queues=");
	p->linktype = (uint16_t)number(p->vdev, ",link=");
	if (!r.tp_frame_size || !r.tp_block_size || !r.tp_frame_nr || !p->queues ||
		p->queues > QUEUES_MAX)
		return -EINVAL;
	r.tp_block_nr = r.tp_frame_nr / (r.tp_block_size / r.tp_frame_size);
	p->frame_size = r.tp_frame_size;
	p->frame_count = r.tp_frame_nr;
	for (uint16_t q = 0; q < p->queues && !ret; q++)
		ret = open_one(p, &r, &group);
	return ret;
}

void sockets_close(struct port *p)
{
	for (unsigned i = 0; i < p->socket_count; i++) {
		if (p->frames[i])
			munmap(p->frames[i], (size_t)p->frame_size * p->frame_count);
		close(p->sockets[i]);
	}
}

uint64_t sockets_dropped(const struct port *p)
{
	uint64_t sum = 0;

	/* Each answer counts from the one before. */
	for (unsigned i = 0; i < p->socket_count; i++) {
		struct tpacket_stats stats;
		socklen_t len = sizeof(stats);

		if (!getsockopt(p->sockets[i], SOL_PACKET, PACKET_STATISTICS, &stats, &len))
			sum += stats.tp_drops;
	}
	return sum;
}
