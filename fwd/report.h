/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics that both reports show. */
#ifndef RINGTAP_FWD_REPORT_H
#define RINGTAP_FWD_REPORT_H

#include "app.h"

static inline double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static inline double ns_of(double ticks)
{
	return ticks * 1e9 / (double)run.hz;
}

/* Packets per second that a generator sent from the start of a stage, where the first is due, to
 * the last; 0 if it was but one. */
double stage_rate(const struct role *r, unsigned stage);
/* Sums of the sequence numbers of a sink. */
void sink_total(const struct sink *s, struct sequence *sum);

#endif
