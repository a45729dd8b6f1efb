/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to the kernel for an interface by its name. Many programs make them besides opening the
 * interface, and the kernel does not know DPDK ports. A request holds IFNAMSIZ bytes of the name,
 * so only those for aliases and short names can be answered.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handle.h"

static bool is_question(unsigned long request)
{
	switch (request) {
	case SIOCGIFFLAGS:
	case SIOCGIFHWADDR:
	case SIOCGIFMTU:
	case SIOCGIFADDR:
	case SIOCGIFDSTADDR:
	case SIOCGIFBRDADDR:
	case SIOCGIFNETMASK: return true;
	default: return false;
	}
}

static bool find_port(const char *device, struct ringtap_port_info *port)
{
	char err[PCAP_ERRBUF_SIZE];
	struct handle *h = handle_new(device, err);
	bool found = h && name_first_port(h, port);

	if (h)
		handle_free(h);
	return found;
}

/* 0 or -errno. An interface without addresses has the same errors. */
static int answer(unsigned long request, struct ifreq *r, const struct ringtap_port_info *port)
{
	switch (request) {
	case SIOCGIFFLAGS:
		r->ifr_flags = IFF_UP | IFF_BROADCAST | IFF_MULTICAST;
		if (port->link_up)
			r->ifr_flags |= IFF_RUNNING;
		return 0;
	case SIOCGIFHWADDR:
		r->ifr_hwaddr = (struct sockaddr){.sa_family = ARPHRD_ETHER};
		memcpy(r->ifr_hwaddr.sa_data, port->mac, sizeof(port->mac));
		return 0;
	case SIOCGIFMTU: r->ifr_mtu = port->mtu; return 0;
	default: return -EADDRNOTAVAIL;
	}
}

/* Only requests that the kernel has refused are looked up. */
EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct ringtap_port_info port;
	struct ifreq *r;
	va_list ap;
	int ret;

	va_start(ap, request);
	r = va_arg(ap, void *);
	va_end(ap);
	/* The same as libc's ioctl(); looking that up would need a lock. */
	ret = (int)syscall(SYS_ioctl, fd, request, r);
	if (ret != -1 || errno != ENODEV || !is_question(request))
		return ret;
	if (strnlen(r->ifr_name, IFNAMSIZ) < IFNAMSIZ - 1 && name_is_ours(r->ifr_name) &&
		find_port(r->ifr_name, &port)) {
		ret = answer(request, r, &port);
		if (!ret)
			return 0;
		errno = -ret;
		return -1;
	}
	errno = ENODEV;
	return -1;
}
