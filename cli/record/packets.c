/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "common/pcapng.h"
#include "convert.h"
#include "record.h"

static uint64_t min_limit(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Room for the statistics that end a file. */
static uint64_t reserve(const struct recorder *r)
{
	return r->cfg->pcap ? 0 : (uint64_t)r->file_ifs * RT_PCAPNG_ISB_MAX;
}

enum full { FULL_NOT, FULL_PACKETS, FULL_BYTES };

static struct ringtap_run part_of(const struct slice *s)
{
	struct ringtap_run part = *s->run;

	part.data += s->offset;
	part.len = s->len;
	part.packets = s->packets;
	return part;
}

/* Cuts s to its first packets. */
static void cut_packets(struct slice *s, uint64_t packets)
{
	struct ringtap_run part = part_of(s);

	if (s->packets <= packets)
		return;
	s->packets = packets;
	s->len = packets ? ringtap_run_prefix(&part, packets, NULL) : 0;
}

/* Cuts s to what fits into room bytes of the file. */
static void cut_bytes(const struct recorder *r, struct slice *s, uint64_t room)
{
	struct ringtap_run part = part_of(s);

	if (s->len <= room)
		return;
	s->packets = r->cfg->pcap ? pcap_fit(part.data, part.len, room, &s->len)
				  : ringtap_run_fit(&part, room, &s->len);
	/* Even the smallest file holds a packet, or there would be no progress. */
	if (!s->packets && !r->out.packets) {
		s->packets = 1;
		s->len = ringtap_run_prefix(&part, 1, NULL);
	}
}

/* Cuts s so that the current file stays within its limits; to nothing if it is full. */
static enum full cut_to_file(const struct recorder *r, struct slice *s)
{
	uint64_t bytes = min_limit(r->cfg->stop.bytes, r->cfg->rotate.bytes);
	uint64_t used = r->out.bytes + reserve(r);

	if (r->cfg->rotate.packets)
		cut_packets(s, r->cfg->rotate.packets - r->out.packets);
	if (!s->packets)
		return FULL_PACKETS;
	if (bytes)
		cut_bytes(r, s, used < bytes ? bytes - used : 0);
	return s->packets ? FULL_NOT : FULL_BYTES;
}

/* The file is full: end, or go on to the next one. */
static int next_file(struct recorder *r, enum full why)
{
	const struct limits *stop = &r->cfg->stop;
	const struct limits *rotate = &r->cfg->rotate;

	if (why == FULL_BYTES && stop->bytes && (!rotate->bytes || stop->bytes <= rotate->bytes)) {
		recorder_end(r, END_FILESIZE, true);
		return 0;
	}
	return file_next(r);
}

int packets_put(struct recorder *r, const struct ringtap_run *run)
{
	const uint64_t limit = r->cfg->stop.packets;
	struct slice rest = {.run = run, .len = run->len, .packets = run->packets};
	enum full full;
	int ret = 0;

	while (rest.len && !ret) {
		struct slice s = rest;

		if (r->discarding)
			return shares_discard(r, &rest);
		if (limit)
			cut_packets(&s, limit - recorder_written(r));
		full = cut_to_file(r, &s);
		if (full) {
			ret = next_file(r, full);
			continue;
		}
		if (!s.len)
			return -EBADMSG;
		ret = output_slice(&r->out, r->cap, &s);
		rest.offset += s.len;
		rest.len -= s.len;
		rest.packets -= s.packets;
		if (limit && recorder_written(r) >= limit)
			recorder_end(r, END_PACKETS, true);
	}
	return ret;
}
