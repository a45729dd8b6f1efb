/* SPDX-License-Identifier: BSD-3-Clause */
/* From the rings to the callbacks. Hot path: the callback is the only call per packet, so the
 * parser is inline and knows the form of the records: the reader is linked in. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/clock.h"
#include "common/record.h"
#include "handle.h"

#define SLICE_MS  500 /* between checks that the ports still exist */
#define FLAGS_IN  1u
#define FLAGS_OUT 2u

static int take_break(struct handle *h)
{
	if (!rt_load(&h->broken))
		return 0;
	rt_store(&h->broken, 0);
	return PCAP_ERROR_BREAK;
}

/* ---- fetching ---- */

static bool ports_are_gone(const struct handle *h)
{
	unsigned n = ringtap_capture_interface_count(h->cap);

	if (h->all_ports)
		return false;
	for (unsigned i = 0; i < n; i++) {
		struct ringtap_interface f = {.size = sizeof(f)};

		if (!ringtap_capture_interface(h->cap, i, &f) && !f.gone)
			return false;
	}
	return n > 0;
}

static int over(struct handle *h, int error)
{
	h->over = error;
	if (error == -EPIPE)
		return handle_fail(h, PCAP_ERROR, "The interface disappeared");
	return handle_fail(h, PCAP_ERROR, "%s", ringtap_capture_error(h->cap));
}

/* Waits up to wait_ms for runs. Returns their number or PCAP_ERROR. */
static int fetch(struct handle *h, int wait_ms)
{
	int n;

	/* Not earlier: the packet of pcap_next() is valid until the next call. */
	ringtap_capture_release(h->cap);
	h->run_at = h->run_count = 0;
	h->offset = 0;
	if (rt_unlikely(h->unsettled))
		mode_settle(h);
	n = h->over ?: ringtap_capture_next(h->cap, h->runs, RUNS, wait_ms);
	if (!n && ports_are_gone(h)) {
		n = ringtap_capture_next(
			h->cap, h->runs, RUNS, 0); /* captured just before the end */
		n = n ?: -EPIPE;
	}
	if (n < 0)
		return over(h, n);
	h->run_count = n;
	return n;
}

/* ---- handing out ---- */

/* Checks the direction, and the filter where the application has not run it. */
static bool passes(const struct handle *h, const struct ringtap_run *run, const uint8_t *at,
	const struct rt_record *r)
{
	struct rt_options o;
	uint32_t way;

	rt_record_options(at, r, &o);
	way = o.flags & RT_FLAGS_DIRECTION;
	if (h->direction != PCAP_D_INOUT &&
		way != (h->direction == PCAP_D_IN ? FLAGS_IN : FLAGS_OUT))
		return false;
	if (!h->filter.bf_insns || !(h->filter_here || run->stale))
		return true;
	return real()->bpf_filter(h->checks[way == FLAGS_OUT ? RT_DIR_TX : RT_DIR_RX],
		       at + RT_EPB_HEADER, r->orig_len, r->cap_len) != 0;
}

static inline void set_time(struct handle *h, uint64_t ns)
{
	h->ns = ns;
	h->tv.tv_sec = (time_t)(ns / 1000000000);
	h->tv.tv_usec = (suseconds_t)(ns % 1000000000);
	if (h->precision != PCAP_TSTAMP_PRECISION_NANO)
		h->tv.tv_usec /= 1000;
}

/* The packet's bytes, or a copy of them. The copy is valid until the next packet, so not in a
 * callback that reads. */
static inline const u_char *data_of(const struct handle *h, const uint8_t *record, uint32_t caplen)
{
	const u_char *data = record + RT_EPB_HEADER;

	return rt_likely(!h->copy) ? data : memcpy(h->copy, data, caplen);
}

/* A callback can change the filter and the direction, so the answer holds up to the next one. */
static inline bool needs_check(const struct handle *h, const struct ringtap_run *run)
{
	return run->stale || h->filter_here || h->direction != PCAP_D_INOUT;
}

/* Hands out up to max fetched packets. Returns their number or PCAP_ERROR. */
static int hand_out(struct handle *h, int max, pcap_handler callback, u_char *user)
{
	int n = 0;

	for (; h->run_at < h->run_count; h->run_at++, h->offset = 0) {
		const struct ringtap_run *run = &h->runs[h->run_at];

		while (h->offset < run->bytes) {
			const uint8_t *at = (const uint8_t *)run->records + h->offset;
			struct pcap_pkthdr hdr;
			struct rt_record r;

			if (rt_unlikely(rt_record_read(at, run->bytes - h->offset, &r) != NULL) ||
				rt_unlikely(r.cap_len > (uint32_t)h->snaplen))
				return handle_fail(h, PCAP_ERROR, "the ring is corrupt");
			h->offset += r.len;
			if (rt_unlikely(needs_check(h, run)) && !passes(h, run, at, &r))
				continue;
			if (r.ns != h->ns) /* packets of a burst have the same time */
				set_time(h, r.ns);
			hdr = (struct pcap_pkthdr){h->tv, r.cap_len, r.orig_len};
			callback(user, &hdr, data_of(h, at, r.cap_len));
			if (rt_unlikely(++n == max || rt_load(&h->broken) || h->moved))
				return n;
		}
	}
	return n;
}

/* How long to wait now; 0: the timeout has expired, or the handle does not block. As on Linux, the
 * timeout begins with a packet: deadline is 0 before. */
static int wait_ms(const struct handle *h, uint64_t deadline)
{
	uint64_t now;

	if (h->nonblock)
		return 0;
	if (!deadline)
		return SLICE_MS;
	now = rt_time_ns(CLOCK_MONOTONIC) / 1000000;
	if (now >= deadline)
		return 0;
	return deadline - now < SLICE_MS ? (int)(deadline - now) : SLICE_MS;
}

static int read_some(struct handle *h, int max, pcap_handler callback, u_char *user)
{
	uint64_t deadline = 0;

	for (bool last = false;;) {
		int wait, n = take_break(h);

		if (n)
			return n;
		n = hand_out(h, max, callback, user);
		if (rt_load(&h->broken))
			return take_break(h);
		/* A flood of packets that do not pass must not extend a timeout. */
		if (n || last)
			return n;
		wait = wait_ms(h, deadline);
		n = fetch(h, wait);
		if (n < 0 || (!n && !wait))
			return n;
		if (n && !deadline && h->timeout_ms > 0)
			deadline = rt_time_ns(CLOCK_MONOTONIC) / 1000000 + (uint64_t)h->timeout_ms;
		last = !wait;
	}
}

/* pcap_dispatch(). Frees the handle if a callback has closed it. */
static int read_packets(struct handle *h, int max, pcap_handler callback, u_char *user)
{
	int n;

	if (!h->activated)
		return handle_not_activated(h);
	if (rt_unlikely(!fork_may_read(h)))
		return PCAP_ERROR;
	h->depth++;
	h->moved = false;
	n = read_some(h, max > 0 ? max : INT_MAX, callback, user);
	h->moved = --h->depth > 0;
	ringtap_capture_rearm(h->cap, read_has_more(h));
	if (h->closing && !h->depth) {
		handle_free(h);
		return PCAP_ERROR_BREAK;
	}
	return n;
}

/* ---- libpcap's reading functions ---- */

EXPORT int pcap_dispatch(pcap_t *p, int count, pcap_handler callback, u_char *user)
{
	struct handle *h = handle_of(p);

	return h ? read_packets(h, count, callback, user)
		 : real()->pcap_dispatch(p, count, callback, user);
}

EXPORT int pcap_loop(pcap_t *p, int count, pcap_handler callback, u_char *user)
{
	struct handle *h = handle_of(p);
	bool limited = count > 0;

	if (!h)
		return real()->pcap_loop(p, count, callback, user);
	for (;;) {
		int n = read_packets(h, count, callback, user);

		if (n < 0)
			return n;
		if (limited && (count -= n) <= 0)
			return 0;
	}
}

struct one {
	struct pcap_pkthdr *header;
	const u_char *data;
};

static void keep(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	struct one *one = (struct one *)user;

	*one->header = *h;
	one->data = data;
}

EXPORT const u_char *pcap_next(pcap_t *p, struct pcap_pkthdr *header)
{
	struct handle *h = handle_of(p);
	struct one one = {.header = header};

	if (!h)
		return real()->pcap_next(p, header);
	return read_packets(h, 1, keep, (u_char *)&one) > 0 ? one.data : NULL;
}

EXPORT int pcap_next_ex(pcap_t *p, struct pcap_pkthdr **header, const u_char **data)
{
	struct handle *h = handle_of(p);
	struct one one = {0};
	int n;

	if (!h)
		return real()->pcap_next_ex(p, header, data);
	*header = one.header = &h->header;
	n = read_packets(h, 1, keep, (u_char *)&one);
	if (n > 0)
		*data = one.data;
	return n;
}

EXPORT void pcap_breakloop(pcap_t *p)
{
	struct handle *h = handle_of(p);

	if (!h) {
		real()->pcap_breakloop(p);
		return;
	}
	rt_store(&h->broken, 1);
	if (h->cap)
		ringtap_capture_break(h->cap);
}
