/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of a handle, savefiles, statistics, sending. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ringtap/open.h"
#include "handle.h"

/* libpcap's result before activation, and the inner handle's after it. */
#define NUMBER(function)                                   \
	EXPORT int function(pcap_t *p)                     \
	{                                                  \
		struct handle *h = handle_of(p);           \
                                                           \
		if (h && !h->activated)                    \
			return PCAP_ERROR_NOT_ACTIVATED;   \
		return real()->function(h ? h->inner : p); \
	}

NUMBER(pcap_datalink)
NUMBER(pcap_datalink_ext)
NUMBER(pcap_snapshot)
NUMBER(pcap_is_swapped)
NUMBER(pcap_major_version)
NUMBER(pcap_minor_version)

/* libpcap's is the size of a buffer for one packet. */
EXPORT int pcap_bufsize(pcap_t *p)
{
	return handle_of(p) ? pcap_snapshot(p) : real()->pcap_bufsize(p);
}

EXPORT int pcap_list_datalinks(pcap_t *p, int **list)
{
	struct handle *h = handle_of(p);

	if (h && !h->activated)
		return PCAP_ERROR_NOT_ACTIVATED;
	return real()->pcap_list_datalinks(h ? h->inner : p, list);
}

EXPORT int pcap_set_datalink(pcap_t *p, int dlt)
{
	struct handle *h = handle_of(p);
	const char *name;
	int ret;

	if (!h)
		return real()->pcap_set_datalink(p, dlt);
	if (!h->activated) { /* libpcap's type is 0 then; the text is libpcap's */
		name = real()->pcap_datalink_val_to_name(dlt);
		return dlt == DLT_NULL
			       ? 0
			       : handle_fail(h, PCAP_ERROR,
					 "%s is not one of the DLTs supported by this device",
					 name ? name : "That");
	}
	ret = real()->pcap_set_datalink(h->inner, dlt);
	if (ret)
		handle_take_error(h);
	return ret;
}

/* `ringtap run --tags as-is` */
static enum ringtap_tags chosen_tags(void)
{
	const char *value = getenv("RINGTAP_PCAP_TAGS");

	return value && !strcmp(value, "as-is") ? RINGTAP_TAGS_AS_IS : RINGTAP_TAGS_ANY;
}

EXPORT int pcap_compile(
	pcap_t *p, struct bpf_program *prog, const char *text, int optimize, bpf_u_int32 mask)
{
	struct handle *h = handle_of(p);
	int ret;

	if (!h)
		return real()->pcap_compile(p, prog, text, optimize, mask);
	if (!h->activated)
		return handle_fail(
			h, PCAP_ERROR, "not-yet-activated pcap_t passed to pcap_compile");
	ret = ringtap_filter_compile(
		real()->pcap_compile, chosen_tags(), h->inner, prog, text, optimize, mask);
	if (ret)
		handle_take_error(h);
	return ret;
}

/* ---- savefiles ---- */

EXPORT pcap_dumper_t *pcap_dump_open(pcap_t *p, const char *path)
{
	struct handle *h = handle_of(p);
	pcap_dumper_t *d;

	if (!h)
		return real()->pcap_dump_open(p, path);
	if (!h->activated) {
		handle_fail(h, 0, "%s: not-yet-activated pcap_t passed to pcap_dump_open", path);
		return NULL;
	}
	d = real()->pcap_dump_open(h->inner, path);
	if (!d)
		handle_take_error(h);
	return d;
}

EXPORT pcap_dumper_t *pcap_dump_open_append(pcap_t *p, const char *path)
{
	struct handle *h = handle_of(p);
	pcap_dumper_t *d;

	if (!h || !h->inner)
		return real()->pcap_dump_open_append(p, path);
	d = real()->pcap_dump_open_append(h->inner, path);
	if (!d)
		handle_take_error(h);
	return d;
}

EXPORT pcap_dumper_t *pcap_dump_fopen(pcap_t *p, FILE *f)
{
	struct handle *h = handle_of(p);
	pcap_dumper_t *d;

	if (!h || !h->inner)
		return real()->pcap_dump_fopen(p, f);
	d = real()->pcap_dump_fopen(h->inner, f);
	if (!d)
		handle_take_error(h);
	return d;
}

/* ---- statistics ---- */

/* As on Linux: ps_recv counts all packets that passed the filter, also those that were lost for
 * lack of space and those that have not been read yet. */
EXPORT int pcap_stats(pcap_t *p, struct pcap_stat *st)
{
	struct handle *h = handle_of(p);
	struct ringtap_stats all = {.size = sizeof(all)};
	uint64_t lost = 0, missed = 0;

	if (!h)
		return real()->pcap_stats(p, st);
	if (!h->activated)
		return handle_not_activated(h);
	ringtap_capture_stats(h->cap, &all);
	for (int i = 0; i < RINGTAP_LOST_MAX; i++)
		lost += all.total.lost[i];
	for (unsigned i = 0; i < ringtap_capture_interface_count(h->cap); i++) {
		struct ringtap_interface f = {.size = sizeof(f)};

		if (!ringtap_capture_interface(h->cap, i, &f))
			missed += f.nic_imissed + f.nic_nombuf;
	}
	st->ps_recv = (u_int)(all.total.captured + lost);
	st->ps_drop = (u_int)lost;
	st->ps_ifdrop = (u_int)missed;
	return 0;
}

/* ---- sending: not supported ---- */

static int cannot_send(struct handle *h)
{
	if (!h->activated)
		return handle_not_activated(h);
	return handle_fail(h, PCAP_ERROR, "Sending packets isn't supported on ringtap devices");
}

EXPORT int pcap_inject(pcap_t *p, const void *data, size_t size)
{
	struct handle *h = handle_of(p);
	int error = errno; /* libpcap appends its text even if it is stale */

	if (!h)
		return real()->pcap_inject(p, data, size);
	if (size > INT_MAX)
		return handle_fail(h, PCAP_ERROR, "More than %d bytes cannot be injected: %s",
			INT_MAX, strerror(error));
	if (!size)
		return handle_fail(h, PCAP_ERROR,
			"The number of bytes to be injected must not be zero: %s", strerror(error));
	return cannot_send(h);
}

EXPORT int pcap_sendpacket(pcap_t *p, const u_char *data, int size)
{
	struct handle *h = handle_of(p);
	int error = errno;

	if (!h)
		return real()->pcap_sendpacket(p, data, size);
	if (size <= 0)
		return handle_fail(h, PCAP_ERROR,
			"The number of bytes to be sent must be positive: %s", strerror(error));
	return cannot_send(h) == PCAP_ERROR ? PCAP_ERROR : 0;
}
