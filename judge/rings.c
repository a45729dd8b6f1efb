/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule about rings between threads. */
#include "base/util.h"
#include "limits.h"
#include "rules.h"

static const char ring_advice[] =
	"If a thread hands packets over by it: the thread behind it is too slow, and packets are "
	"dropped in front of it, or wait; see that thread's busy time ('ringtap top --view "
	"threads'), give its work to more threads, or make the ring longer for short bursts. If it "
	"holds free objects: nothing";

/* A level that never changes is that of a ring which nobody uses now. */
static bool is_full(const struct ring_readings *r)
{
	return r->samples >= LIMIT_RING_SAMPLES && r->full >= LIMIT_RING_FULL * r->samples &&
	       r->least != r->most;
}

void rule_rings(const struct examination *e, struct diagnosis *d)
{
	for (uint32_t i = 0; i < e->ring_count; i++) {
		const struct ringtap_ring_stats *s = ringtap_snapshot_ring(e->span.to, i);
		const struct ring_readings *r = &e->rings[i];
		double share = r->samples ? (double)r->full / r->samples : 0;
		struct verdict *v;

		if (s->gone || !is_full(r))
			continue;
		v = verdict_add(d, VERDICT_RING_FULL, GRADE_NOTE, share, ring_advice);
		if (!v)
			return;
		printable(v->where, RINGTAP_NAME_LEN, s->name);
		verdict_add_evidence(v,
			"in %.0f %% of %u samples it had room for %u objects or fewer, of %u",
			100 * share, r->samples, ring_room(s), s->capacity);
		verdict_add_evidence(v, "it held %u to %u objects", r->least, r->most);
	}
}
