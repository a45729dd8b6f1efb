/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/util.h"
#include "capture.h"
#include "common/proto.h"
#include "target/which_app.h"

#define LOOK_NS (NS_PER_S / 5) /* for the rate */
/* A packet that is copied costs about 40 ns: docs/performance.md. Of these, 2 % of a second. */
#define PER_SECOND 500e3

uint32_t flows_sample_of(double packets_per_second)
{
	uint32_t n = 1;

	while (n < RT_SAMPLE_MAX && packets_per_second / n > PER_SECOND)
		n *= 2;
	return n;
}

uint32_t flows_sample_now(const struct flows_request *r, uint64_t counted, double seconds)
{
	const uint32_t n = flows_sample_of((double)counted * r->sample / seconds);

	return r->by_rate && (n > 2 * r->sample || r->sample >= 8 * n) ? n : 0;
}

static unsigned targets_of(const struct fates_session *s, const struct flows_request *r,
	struct ringtap_target *targets)
{
	unsigned n = s->app.port_count ? s->app.port_count : 1;

	for (unsigned i = 0; i < n; i++)
		targets[i] =
			(struct ringtap_target){.port = s->app.port_count ? s->app.ports[i] : NULL,
				.queue = -1,
				.directions = r->directions ? r->directions
					      : r->ids      ? RINGTAP_RX | RINGTAP_TX
							    : RINGTAP_RX,
				.snaplen = s->snaplen,
				.filter = r->filter.insns,
				.filter_len = r->filter.len};
	return n;
}

/* Packets a second that pass the taps, from a sample that hardly has any. */
static int look(const struct fates_session *s, const struct ringtap_target *targets, unsigned count,
	double *rate)
{
	const struct ringtap_capture_options o = {
		.size = sizeof(o), .buffer_size = 65536, .sample = RT_SAMPLE_MAX};
	struct ringtap_stats stats = {.size = sizeof(stats)};
	struct ringtap_capture *cap;
	struct ringtap_run run;
	uint64_t start;
	int ret = ringtap_capture_create(&cap, NULL);

	if (ret)
		return ret;
	ret = ringtap_capture_attach(cap, s->app.dir, targets, count, &o);
	if (!ret)
		ret = ringtap_capture_start(cap);
	if (ret && s->command)
		print_not_attached(s->command, s->app.name, ret, ringtap_capture_error(cap));
	start = now_ns(CLOCK_MONOTONIC);
	while (!ret && now_ns(CLOCK_MONOTONIC) - start < LOOK_NS) {
		if (ringtap_capture_next(cap, &run, 1, 20) < 0)
			break;
		ringtap_capture_release(cap);
	}
	if (!ret && !ringtap_capture_stats(cap, &stats))
		*rate = (double)stats.total.seen * NS_PER_S /
			(double)(now_ns(CLOCK_MONOTONIC) - start);
	ringtap_capture_close(cap);
	return ret;
}

int flows_attach(struct fates_session *s, struct flows_request *r)
{
	struct ringtap_target targets[ONE_APP_PORTS];
	unsigned count = targets_of(s, r, targets);
	struct ringtap_capture_options o = {.size = sizeof(o),
		.buffer_size = s->buffer_size,
		.ids = r->ids ? RINGTAP_IDS_INFERRED : RINGTAP_NO_IDS};
	double rate = 0;
	int ret = r->sample ? 0 : look(s, targets, count, &rate);

	if (ret)
		return ret;
	if (!r->sample) {
		r->sample = flows_sample_of(rate);
		r->by_rate = true;
	}
	o.sample = r->sample;
	ret = ringtap_capture_attach(s->cap, s->app.dir, targets, count, &o);
	if (ret && s->command)
		print_not_attached(s->command, s->app.name, ret, ringtap_capture_error(s->cap));
	return ret;
}
