/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors for select(), poll() and epoll. */
#include "handle.h"

EXPORT int pcap_get_selectable_fd(pcap_t *p)
{
	struct handle *h = handle_of(p);

	return h ? PCAP_ERROR : real()->pcap_get_selectable_fd(p);
}

EXPORT int pcap_fileno(pcap_t *p)
{
	return handle_of(p) ? pcap_get_selectable_fd(p) : real()->pcap_fileno(p);
}

/* The descriptor alone will do. */
EXPORT const struct timeval *pcap_get_required_select_timeout(pcap_t *p)
{
	return handle_of(p) ? NULL : real()->pcap_get_required_select_timeout(p);
}
