/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "common/array.h"
#include "base/util.h"
#include "counts.h"
#include "record.h"

static void counts_add(struct ringtap_counts *sum, const struct ringtap_counts *c)
{
	sum->seen += c->seen;
	sum->captured += c->captured;
	sum->filtered += c->filtered;
	sum->not_sampled += c->not_sampled;
	sum->cut += c->cut;
	sum->evicted += c->evicted;
	sum->bytes += c->bytes;
	for (unsigned i = 0; i < RINGTAP_LOST_MAX; i++)
		sum->lost[i] += c->lost[i];
}

int shares_update(struct recorder *r)
{
	unsigned taps = ringtap_capture_tap_count(r->cap);
	int ret =
		rt_array_extend(r->shares, r->share_count, ringtap_capture_interface_count(r->cap));

	if (ret)
		return ret;
	for (unsigned i = 0; i < r->share_count; i++)
		r->shares[i].counts = (struct ringtap_counts){0};
	for (unsigned i = 0; i < taps; i++) {
		struct ringtap_tap t = {.size = sizeof(t)};

		if (!ringtap_capture_tap(r->cap, i, &t) && t.interface < r->share_count)
			counts_add(&r->shares[t.interface].counts, &t.counts);
	}
	return 0;
}

int shares_discard(struct recorder *r, const struct ringtap_run *run)
{
	int ret =
		rt_array_extend(r->shares, r->share_count, ringtap_capture_interface_count(r->cap));
	const struct ringtap_packet *p;

	if (ret)
		return ret;
	ringtap_packets_start(r->walk, run);
	while ((p = ringtap_packet_next(r->walk))) {
		if (p->interface < r->share_count)
			r->shares[p->interface].discarded++;
	}
	return ringtap_packets_error(r->walk);
}

uint64_t recorder_written(const struct recorder *r)
{
	uint64_t sum = r->written;

	for (unsigned i = 0; i < r->part_count; i++)
		sum += r->parts[i].file.out.sink ? r->parts[i].file.out.packets : 0;
	return sum;
}

double recorder_seconds(const struct recorder *r)
{
	return (double)(r->end_mono_ns - r->start_mono_ns) / NS_PER_S;
}

double recorder_rate(const struct recorder *r)
{
	double seconds = recorder_seconds(r);

	return seconds > 0 ? (double)r->written / seconds : 0;
}

void recorder_end(struct recorder *r, enum end_reason why, bool discard)
{
	if (!r->end)
		r->end = why;
	r->stopping = true;
	r->discarding = r->discarding || discard;
}
