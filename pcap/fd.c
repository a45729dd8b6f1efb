/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors for select(), poll() and epoll. */
#include "handle.h"

EXPORT int pcap_get_selectable_fd(pcap_t *p)
{
	struct handle *h = handle_of(p);

	int fd;

	if (!h)
		return real()->pcap_get_selectable_fd(p);
	if (!h->activated)
		return PCAP_ERROR; /* as libpcap: no descriptor */
	fd = ringtap_capture_fd(h->cap, read_has_more(h));
	return fd >= 0 ? fd : handle_fail(h, PCAP_ERROR, "%s", ringtap_capture_error(h->cap));
}

EXPORT int pcap_fileno(pcap_t *p)
{
	return handle_of(p) ? pcap_get_selectable_fd(p) : real()->pcap_fileno(p);
}

/* The descriptor needs no timeout. */
EXPORT const struct timeval *pcap_get_required_select_timeout(pcap_t *p)
{
	return handle_of(p) ? NULL : real()->pcap_get_required_select_timeout(p);
}
