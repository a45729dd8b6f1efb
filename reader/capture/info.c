/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics and interfaces of a capture. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reader/find/apps.h"
#include "capture.h"
#include "grow.h"
#include "reader/export.h"

EXPORT unsigned ringtap_capture_interface_count(const struct ringtap_capture *cap)
{
	return cap->if_count;
}

/* 0: there is no line. */
static uint64_t tsc_hz(const struct rt_source *s)
{
	unsigned __int128 ticks = (unsigned __int128)1000000000 << RT_CLOCK_SHIFT;

	return s->line.mult ? (uint64_t)((ticks + s->line.mult / 2) / s->line.mult) : 0;
}

/* Containers may choose the same file-prefix; names as in ringtap_apps_find(). */
static void name_app(
	const struct ringtap_capture *cap, const struct rt_source *s, char name[RINGTAP_NAME_LEN])
{
	const struct ringtap_conn *c = s->conn;
	char pid[16] = "";

	for (unsigned i = 0; i < cap->source_count; i++)
		if (&cap->sources[i] != s &&
			!strcmp(cap->sources[i].conn->app.prefix, c->app.prefix))
			snprintf(pid, sizeof(pid), RT_NAMESAKE "%u",
				c->host_pid ? c->host_pid : c->app.pid);
	snprintf(name, RINGTAP_NAME_LEN, "%.*s%s", (int)(RINGTAP_NAME_LEN - 1 - strlen(pid)),
		c->app.prefix, pid);
}

EXPORT int ringtap_capture_interface(
	const struct ringtap_capture *cap, unsigned i, struct ringtap_interface *out)
{
	struct ringtap_interface v = {0};
	const struct rt_source *s;
	const struct rt_seg_if *f;

	if (i >= cap->if_count)
		return -ENOENT;
	s = &cap->sources[cap->ifs[i].source];
	f = &s->seg.ifs[cap->ifs[i].local];
	v.app = cap->ifs[i].source;
	v.target = rt_load(&f->target);
	if (v.target >= s->target_count)
		v.target = RINGTAP_NO_INDEX;
	name_app(cap, s, v.app_name);
	rt_copy_text(v.device, f->name, sizeof(v.device));
	memcpy(v.name, cap->ifs[i].name[0] ? cap->ifs[i].name : v.device, sizeof(v.name));
	rt_copy_text(v.driver, f->driver, sizeof(v.driver));
	memcpy(v.mac, f->mac, sizeof(v.mac));
	v.port_id = f->port_id;
	v.link_mbps = f->link_mbps;
	v.snaplen = f->snaplen;
	v.linktype = rt_load(&f->linktype);
	if (!v.linktype)
		v.linktype = RT_LINKTYPE_ETHERNET;
	v.gone = s->dead || rt_load(&f->state) == RT_IF_GONE;
	v.nic_ipackets = rt_load(&f->ipackets);
	v.nic_opackets = rt_load(&f->opackets);
	v.nic_imissed = rt_load(&f->imissed);
	v.nic_ierrors = rt_load(&f->ierrors);
	v.nic_nombuf = rt_load(&f->rx_nombuf);
	v.nic_oerrors = rt_load(&f->oerrors);
	v.nic_ns = rt_load(&f->nic_ns);
	v.tsc_hz = tsc_hz(s);
	v.sample = s->sample;
	return rt_copy_out(out, &v, sizeof(v));
}

static_assert((int)RT_LOSS_COUNT <= RINGTAP_LOST_MAX, "room for all reasons");

static void add_counts(
	struct ringtap_counts *sum, const struct rt_seg_count *c, const struct rt_source *s)
{
	sum->seen += rt_load(&c->seen);
	sum->captured += rt_load(&c->captured);
	sum->filtered += rt_load(&c->filtered);
	for (int i = 0; i < RT_LOSS_COUNT; i++)
		sum->lost[i] += rt_load(&c->lost[i]);
	sum->bytes += rt_load(&c->bytes);
	sum->not_sampled += s->sample > 1 ? rt_load(&c->not_sampled) : 0;
	sum->cut += s->first ? rt_load(&c->cut) : 0;
	sum->evicted += s->first ? rt_load(&c->evicted) : 0;
}

static struct ringtap_counts sum_tap(const struct rt_source *s, uint32_t tap)
{
	struct ringtap_counts sum = {0};
	const struct rt_seg_count *row;

	for (uint32_t at = 0; (row = rt_segment_row(&s->seg, &at));)
		add_counts(&sum, &row[tap], s);
	return sum;
}

EXPORT unsigned ringtap_capture_tap_count(const struct ringtap_capture *cap)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < cap->source_count; i++)
		n += rt_segment_tap_count(&cap->sources[i].seg);
	return n;
}

EXPORT int ringtap_capture_tap(
	const struct ringtap_capture *cap, unsigned i, struct ringtap_tap *out)
{
	for (uint32_t k = 0; k < cap->source_count; k++) {
		const struct rt_source *s = &cap->sources[k];
		uint32_t n = rt_segment_tap_count(&s->seg);
		struct ringtap_tap v = {0};
		uint32_t local;

		if (i >= n) {
			i -= n;
			continue;
		}
		/* An interface without packets may not be known yet. */
		local = rt_load(&s->seg.taps[i].if_index); /* read once: the probe may change it */
		if (local >= s->if_known)
			return -EAGAIN;
		v.interface = s->if_ids[local];
		v.queue = s->seg.taps[i].queue;
		v.direction = s->seg.taps[i].direction == RT_DIR_RX ? RINGTAP_RX : RINGTAP_TX;
		v.counts = sum_tap(s, i);
		return rt_copy_out(out, &v, sizeof(v));
	}
	return -ENOENT;
}

EXPORT unsigned ringtap_capture_ring_count(const struct ringtap_capture *cap)
{
	return cap->in_count;
}

EXPORT int ringtap_capture_ring(
	const struct ringtap_capture *cap, unsigned i, struct ringtap_ring *out)
{
	struct ringtap_ring v = {0};
	const struct rt_seg_ring *pub;
	const struct rt_in *in;

	if (i >= cap->in_count)
		return -ENOENT;
	in = &cap->ins[i];
	pub = &cap->sources[in->source].seg.rings[in->index];
	v.app = in->source;
	v.lcore = rt_load(&pub->lcore);
	v.tid = rt_load(&pub->tid);
	v.buffer_size = cap->sources[in->source].there;
	v.written = rt_load(&pub->head);
	v.pause_written = in->pause_written;
	v.pause_lost = in->pause_lost;
	v.used = v.written - in->tail;
	if (v.used > v.buffer_size)
		v.used = v.buffer_size;
	return rt_copy_out(out, &v, sizeof(v));
}

EXPORT int ringtap_capture_stats(const struct ringtap_capture *cap, struct ringtap_stats *out)
{
	struct ringtap_stats v = {.delivered = cap->delivered,
		.reordered = cap->reordered,
		.buffer_size = cap->most_used_of,
		.buffer_most_used = cap->most_used,
		.longest_pause_ns = cap->longest_pause_ns};
	uint64_t growing_ns;

	for (uint32_t i = 0; i < cap->source_count; i++) {
		const struct rt_segment *seg = &cap->sources[i].seg;
		uint32_t taps = rt_segment_tap_count(seg);
		const struct rt_seg_count *row;

		for (uint32_t at = 0; (row = rt_segment_row(seg, &at));) {
			for (uint32_t t = 0; t < taps; t++)
				add_counts(&v.total, &row[t], &cap->sources[i]);
		}
		v.apps_dead += cap->sources[i].dead;
		v.growing_lost += rt_growth_lost(&cap->sources[i]);
		growing_ns = rt_growth_ns(&cap->sources[i]);
		v.growing_ns = growing_ns > v.growing_ns ? growing_ns : v.growing_ns;
		v.queues_refused += rt_load(&seg->live->taps_refused);
	}
	return rt_copy_out(out, &v, sizeof(v));
}

EXPORT const char *ringtap_capture_buffer_error(const struct ringtap_capture *cap)
{
	for (uint32_t i = 0; i < cap->source_count; i++) {
		if (cap->sources[i].growth_error[0])
			return cap->sources[i].growth_error;
	}
	return "";
}
