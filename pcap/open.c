/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/if_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

EXPORT pcap_t *pcap_create(const char *device, char *err)
{
	struct handle *h;

	if (!name_is_ours(device))
		return real()->pcap_create(device, err);
	err[0] = 0;
	h = handle_new(device, err);
	return h ? h->user : NULL;
}

/* Makes the handle that has snapshot length and precision. */
static int make_inner(struct handle *h)
{
	if (h->inner)
		real()->pcap_close(h->inner);
	h->inner = real()->pcap_open_dead_with_tstamp_precision(
		h->linktype == RINGTAP_LINKTYPE_RAW ? DLT_RAW : h->linktype, h->snaplen,
		(unsigned)h->precision);
	return h->inner ? 0 : handle_fail(h, PCAP_ERROR, "malloc: Cannot allocate memory");
}

/* For programs that write into packets: the ring can only be read. The variable is set by `ringtap
 * run --copy`. */
static int make_copy(struct handle *h)
{
	if (!getenv("RINGTAP_PCAP_COPY"))
		return 0;
	free(h->copy);
	h->copy = malloc((size_t)h->snaplen);
	return h->copy ? 0 : handle_fail(h, PCAP_ERROR, "malloc: %s", strerror(ENOMEM));
}

/* `ringtap run --sample N`. What is not a number of it is refused by the library. */
static uint32_t sample(void)
{
	const char *value = getenv("RINGTAP_PCAP_SAMPLE");

	return value ? (uint32_t)strtoul(value, NULL, 10) : 0;
}

/* Attaches and starts: packets are captured from now on, as with libpcap. */
static int start(struct handle *h)
{
	struct ringtap_target model = {.queue = -1,
		.directions = RINGTAP_RX | RINGTAP_TX,
		.snaplen = (uint32_t)h->snaplen};
	struct ringtap_capture_options options = {.size = sizeof(options),
		.timestamp = h->tstamp_type == PCAP_TSTAMP_ADAPTER ? RINGTAP_NIC : RINGTAP_TSC};
	int ret;

	options.sample = sample();
	/* Some programs (dumpcap) set libpcap's default: they do not need this size. */
	if (h->buffer_size != BUFFER_USUAL)
		options.buffer_size = (uint64_t)h->buffer_size;
	ret = ringtap_capture_create(&h->cap, NULL);
	if (ret)
		return handle_fail(h, PCAP_ERROR, "cannot create a capture: %s", strerror(-ret));
	ret = name_attach(h, &model, &options);
	if (!ret)
		ret = make_inner(h);
	if (!ret && (ret = ringtap_capture_start(h->cap)))
		ret = handle_fail(h, PCAP_ERROR, "%s", ringtap_capture_error(h->cap));
	if (!ret)
		return 0;
	ringtap_capture_close(h->cap);
	h->cap = NULL;
	return ret;
}

/* A queue has a limited number of captures. Where all have it, the start has failed. */
static int complain(struct handle *h)
{
	struct ringtap_stats st = {.size = sizeof(st)};

	ringtap_capture_stats(h->cap, &st);
	if (!st.queues_refused)
		return 0;
	return handle_fail(h, PCAP_WARNING,
		"%llu of %u queues are not captured: there are too many captures of them",
		(unsigned long long)st.queues_refused, ringtap_capture_tap_count(h->cap));
}

EXPORT int pcap_activate(pcap_t *p)
{
	struct handle *h = handle_of(p);
	int ret;

	if (!h)
		return real()->pcap_activate(p);
	if (h->activated)
		return handle_fail(
			h, PCAP_ERROR_ACTIVATED, "can't perform  operation on activated capture");
	if (h->rfmon)
		return handle_fail(h, PCAP_ERROR_RFMON_NOTSUP, "%s",
			real()->pcap_statustostr(PCAP_ERROR_RFMON_NOTSUP));
	if (h->protocol && h->protocol != ETH_P_ALL)
		return handle_fail(h, PCAP_ERROR, "ports do not support a protocol: use a filter");
	if (h->snaplen <= 0 || h->snaplen > SNAPLEN_MAX)
		h->snaplen = SNAPLEN_MAX;
	ret = make_copy(h);
	if (!ret && !h->owner)
		ret = fork_prepare(h);
	if (!ret)
		ret = start(h);
	if (!ret)
		ret = complain(h);
	h->activated = ret >= 0;
	return ret;
}

/* The text that libpcap's pcap_open_live() has where activation fails. */
static void explain(char *err, const char *device, int status, const char *text)
{
	const char *generic = real()->pcap_statustostr(status);

	if (status == PCAP_ERROR)
		snprintf(err, PCAP_ERRBUF_SIZE, "%s: %s", device, text);
	else if (text[0] &&
		 (status == PCAP_ERROR_NO_SUCH_DEVICE || status == PCAP_ERROR_PERM_DENIED ||
			 status == PCAP_ERROR_PROMISC_PERM_DENIED))
		snprintf(err, PCAP_ERRBUF_SIZE, "%s: %s (%s)", device, generic, text);
	else
		snprintf(err, PCAP_ERRBUF_SIZE, "%s: %s", device, generic);
}

EXPORT pcap_t *pcap_open_live(
	const char *device, int snaplen, int promisc, int timeout_ms, char *err)
{
	struct handle *h;
	int ret;

	if (!name_is_ours(device))
		return real()->pcap_open_live(device, snaplen, promisc, timeout_ms, err);
	h = handle_new(device, err);
	if (!h)
		return NULL;
	h->snaplen = snaplen;
	h->timeout_ms = timeout_ms;
	ret = pcap_activate(h->user);
	if (ret >= 0)
		return h->user;
	explain(err, device, ret, real()->pcap_geterr(h->user));
	handle_free(h);
	return NULL;
}

/* The reading function that calls a callback still uses the handle: if the callback closes it, the
 * reading function frees it when it returns. */
EXPORT void pcap_close(pcap_t *p)
{
	struct handle *h = handle_of(p);

	if (!h) {
		real()->pcap_close(p);
	} else if (h->depth) {
		h->closing = true;
		pcap_breakloop(p);
	} else {
		handle_free(h);
	}
}
