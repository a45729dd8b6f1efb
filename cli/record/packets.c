/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "common/pcapng.h"
#include "sink/convert.h"
#include "counts.h"
#include "file.h"
#include "record.h"

static uint64_t min_limit(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Room for the statistics that end a file. */
static uint64_t reserve(const struct recorder *r)
{
	return r->cfg->output.pcap ? 0 : (uint64_t)r->parts->file.interfaces * RT_PCAPNG_ISB_MAX;
}

enum full { FULL_NOT, FULL_PACKETS, FULL_BYTES };

/* The first packets of rest, so that the current file stays within its limits, at most max; none if
 * it is full. -EBADMSG: the records have become invalid. */
static int cut_to_file(const struct recorder *r, struct ringtap_run *rest, uint64_t max,
	struct ringtap_run *part, enum full *why)
{
	uint64_t bytes = min_limit(r->cfg->stop.bytes, r->cfg->rotate.bytes);
	const struct output *out = &r->parts->file.out;
	uint64_t used = out->bytes + reserve(r), room = used < bytes ? bytes - used : 0;
	uint64_t packets = max;

	*why = FULL_NOT;
	part->packets = 0;
	if (r->cfg->rotate.packets && r->cfg->rotate.packets - out->packets < packets)
		packets = r->cfg->rotate.packets - out->packets;
	if (!packets) {
		*why = FULL_PACKETS;
		return 0;
	}
	if (bytes && r->cfg->output.pcap) {
		uint64_t fit = pcap_fit(out->walk, rest, room);

		packets = fit < packets ? fit : packets;
		room = UINT64_MAX;
	}
	if (packets && ringtap_run_take(rest, packets, bytes ? room : UINT64_MAX, part))
		return 0;
	*why = FULL_BYTES;
	if (out->packets && bytes)
		return 0;
	/* Even the smallest file holds a packet, or there would be no progress. */
	*why = FULL_NOT;
	return ringtap_run_take(rest, 1, UINT64_MAX, part) ? 0 : -EBADMSG;
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

/* The file of a packet. */
static unsigned part_of(const struct recorder *r, const struct ringtap_packet *p)
{
	if (r->cfg->split == SPLIT_INTERFACE)
		return p->interface;
	return r->part_count > 1 && p->direction == RINGTAP_TX;
}

/* Packets that follow each other and belong to one file, as those of a burst, go there together. */
static int put_split(struct recorder *r, const struct ringtap_run *run)
{
	struct ringtap_run rest = *run, part;
	const struct ringtap_packet *p;
	int ret = 0;

	ringtap_packets_fields(r->walk, RINGTAP_FIELDS_ALL);
	ringtap_packets_start(r->walk, run);
	p = ringtap_packet_next(r->walk);
	while (p && !ret) {
		unsigned to = part_of(r, p);
		uint64_t n = 0;

		for (; p && part_of(r, p) == to; p = ringtap_packet_next(r->walk))
			n++;
		if (to >= r->part_count || ringtap_run_take(&rest, n, UINT64_MAX, &part) != n)
			return -EBADMSG;
		ret = output_run(&r->parts[to].file.out, &part);
	}
	return ret ? ret : ringtap_packets_error(r->walk);
}

static int put(struct recorder *r, const struct ringtap_run *run)
{
	return r->cfg->split ? put_split(r, run) : output_run(&r->parts->file.out, run);
}

int packets_put(struct recorder *r, const struct ringtap_run *run)
{
	const uint64_t limit = r->cfg->stop.packets;
	struct ringtap_run rest = *run, part;
	enum full full;
	int ret = 0;

	while (rest.packets && !ret) {
		if (r->discarding)
			return shares_discard(r, &rest);
		ret = cut_to_file(
			r, &rest, limit ? limit - recorder_written(r) : UINT64_MAX, &part, &full);
		if (ret)
			return ret;
		if (full) {
			ret = next_file(r, full);
			continue;
		}
		ret = put(r, &part);
		if (limit && recorder_written(r) >= limit)
			recorder_end(r, END_PACKETS, true);
	}
	return ret;
}
