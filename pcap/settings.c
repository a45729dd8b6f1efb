/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings between pcap_create() and pcap_activate(). */
#include <stdlib.h>

#include "handle.h"

static int refuse(struct handle *h)
{
	/* libpcap's text, including the two blanks. */
	return handle_fail(
		h, PCAP_ERROR_ACTIVATED, "can't perform  operation on activated capture");
}

#define SETTER(function, field)                            \
	EXPORT int function(pcap_t *p, int value)          \
	{                                                  \
		struct handle *h = handle_of(p);           \
                                                           \
		if (!h)                                    \
			return real()->function(p, value); \
		if (h->activated)                          \
			return refuse(h);                  \
		h->field = value;                          \
		return 0;                                  \
	}

SETTER(pcap_set_snaplen, snaplen)
SETTER(pcap_set_timeout, timeout_ms)
SETTER(pcap_set_rfmon, rfmon)
SETTER(pcap_set_protocol_linux, protocol)
/* Without effect: all packets that a port receives are captured, and without delay. */
SETTER(pcap_set_promisc, ignored)
SETTER(pcap_set_immediate_mode, ignored)

EXPORT int pcap_set_buffer_size(pcap_t *p, int value)
{
	struct handle *h = handle_of(p);

	if (!h)
		return real()->pcap_set_buffer_size(p, value);
	if (h->activated)
		return refuse(h);
	if (value > 0)
		h->buffer_size = value;
	return 0;
}

EXPORT int pcap_set_tstamp_type(pcap_t *p, int value)
{
	struct handle *h = handle_of(p);

	if (!h)
		return real()->pcap_set_tstamp_type(p, value);
	if (h->activated)
		return refuse(h);
	if (value != PCAP_TSTAMP_HOST && value != PCAP_TSTAMP_ADAPTER)
		return PCAP_WARNING_TSTAMP_TYPE_NOTSUP;
	h->tstamp_type = value;
	return 0;
}

EXPORT int pcap_list_tstamp_types(pcap_t *p, int **types)
{
	struct handle *h = handle_of(p);

	if (!h)
		return real()->pcap_list_tstamp_types(p, types);
	*types = malloc(2 * sizeof(**types)); /* pcap_free_tstamp_types() is free() */
	if (!*types)
		return handle_fail(h, PCAP_ERROR, "malloc: Cannot allocate memory");
	(*types)[0] = PCAP_TSTAMP_HOST;
	(*types)[1] = PCAP_TSTAMP_ADAPTER;
	return !h->activated && name_has_adapter_time(h) ? 2 : 1;
}

EXPORT int pcap_set_tstamp_precision(pcap_t *p, int value)
{
	struct handle *h = handle_of(p);

	if (!h)
		return real()->pcap_set_tstamp_precision(p, value);
	if (h->activated)
		return refuse(h);
	if (value != PCAP_TSTAMP_PRECISION_MICRO && value != PCAP_TSTAMP_PRECISION_NANO)
		return PCAP_ERROR_TSTAMP_PRECISION_NOTSUP;
	h->precision = value;
	return 0;
}

EXPORT int pcap_get_tstamp_precision(pcap_t *p)
{
	struct handle *h = handle_of(p);

	return h ? h->precision : real()->pcap_get_tstamp_precision(p);
}

EXPORT int pcap_can_set_rfmon(pcap_t *p)
{
	return handle_of(p) ? 0 : real()->pcap_can_set_rfmon(p);
}
