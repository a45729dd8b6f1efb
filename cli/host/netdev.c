/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev.h"

/* As in linux/if_arp.h, which cannot be included with net/if_arp.h. */
#define RAWIP  519
#define IP6GRE 823

#define ANY_MTU 65535

static bool flag(int fd, struct ifreq *r, uint32_t what)
{
	struct ethtool_value v = {.cmd = what};

	r->ifr_data = (void *)&v;
	return !ioctl(fd, SIOCETHTOOL, r) && v.data;
}

static bool lro(int fd, struct ifreq *r)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GFLAGS};

	r->ifr_data = (void *)&v;
	return !ioctl(fd, SIOCETHTOOL, r) && (v.data & ETH_FLAG_LRO);
}

static uint32_t queues(int fd, struct ifreq *r)
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};

	r->ifr_data = (void *)&c;
	if (ioctl(fd, SIOCETHTOOL, r) || c.rx_count + c.combined_count == 0)
		return 1;
	return c.rx_count + c.combined_count;
}

/* As libpcap on Linux, where it takes one of these. */
static uint16_t linktype_of(uint16_t arphrd)
{
	switch (arphrd) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK: return NETDEV_ETHERNET;
	case ARPHRD_SLIP:
	case ARPHRD_CSLIP:
	case ARPHRD_SLIP6:
	case ARPHRD_CSLIP6:
	case ARPHRD_RAWHDLC:
	case ARPHRD_TUNNEL:
	case ARPHRD_SIT:
	case ARPHRD_NONE: return NETDEV_RAW;
	case ARPHRD_PPP:
	case RAWIP:
	case ARPHRD_TUNNEL6:
	case ARPHRD_IPGRE:
	case IP6GRE: return NETDEV_SLL;
	default: return 0;
	}
}

static int get(int fd, struct ifreq *r, struct netdev *out)
{
	if (ioctl(fd, SIOCGIFFLAGS, r))
		return -errno;
	out->up = r->ifr_flags & IFF_UP;
	if (ioctl(fd, SIOCGIFMTU, r))
		return -errno;
	out->mtu = (uint32_t)r->ifr_mtu;
	if (ioctl(fd, SIOCGIFHWADDR, r))
		return -errno;
	out->arphrd = r->ifr_hwaddr.sa_family;
	out->linktype = linktype_of(out->arphrd);
	out->queues = queues(fd, r);
	out->merges = flag(fd, r, ETHTOOL_GGRO) || flag(fd, r, ETHTOOL_GTSO) ||
		      flag(fd, r, ETHTOOL_GGSO) || lro(fd, r);
	return 0;
}

int netdev_get(const char *name, struct netdev *out)
{
	struct ifreq r = {0};
	int fd, ret;

	if (strlen(name) >= sizeof(r.ifr_name))
		return -ENAMETOOLONG;
	if (!strcmp(name, "any")) {
		*out = (struct netdev){.linktype = NETDEV_SLL2,
			.mtu = ANY_MTU,
			.queues = 1,
			.up = true,
			.merges = true};
		return 0;
	}
	strcpy(r.ifr_name, name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ret = get(fd, &r, out);
	close(fd);
	return ret;
}

int netdev_allowed(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}
