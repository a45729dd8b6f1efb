/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "role.h"

struct run run;

void role_stop(struct role *r)
{
	struct counters *c = role_counters(r);
	uint16_t n = r->held_end - r->held_first;

	if (n) {
		link_free(r->plane, r->held + r->held_first, n);
		count_add(c->tx_unsent, n);
		trace_drop(r->to, n, FWD_DROP_TX_UNSENT);
	}
	r->held_first = r->held_end = 0;
	if (r->plane == PLANE_MMAP && r->to) {
		uint64_t left = mmap_ops.drain(r->to);

		count_add(c->tx_packets, -left);
		count_add(c->tx_unsent, left);
		if (left)
			trace_drop(r->to, left, FWD_DROP_TX_UNSENT);
	}
	if (r->generator && r->generator->built) {
		link_free(r->plane, r->held, r->generator->built);
		r->generator->built = 0;
	}
}

void role_free(struct role *r)
{
	if (r->generator)
		frames_free(&r->generator->frames);
	if (r->sink)
		for (unsigned i = 0; i < STAMP_STREAMS; i++)
			free(r->sink->streams[i]);
	samples_free(r->samples);
	free(r->latency);
	free(r->generator);
	free(r->sink);
	free(r->from);
	if (r->to != r->from)
		free(r->to);
}
