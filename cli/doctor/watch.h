/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches applications for a while, then judges each. */
#ifndef RINGTAP_CLI_DOCTOR_WATCH_H
#define RINGTAP_CLI_DOCTOR_WATCH_H

#include "judge/examination.h"

#define DOCTOR_MIN_NS NS_PER_S /* to watch: drivers and the kernel are read twice a second */

enum doctor_end {
	DOCTOR_WHOLE,
	DOCTOR_CUT,       /* by a signal: on the time until then, without buffer addresses */
	DOCTOR_TOO_SHORT, /* by a signal, before DOCTOR_MIN_NS; take was not called */
	DOCTOR_FAILED,    /* out of memory */
};

/* Watches for duration_ns, or until a signal comes, then calls take for each application. packets:
 * where a pool's use grows, received packets are followed for DOCTOR_PACKETS_NS more. */
enum doctor_end doctor_watch(struct watch *w, uint64_t duration_ns, bool packets,
	void (*take)(void *ctx, const struct examination *e, const struct diagnosis *d), void *ctx);

#endif
