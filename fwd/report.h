/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics for both reports. */
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

/* Packets per second that a generator sent, from the start of the stage, where the first packet is
 * due, to its last burst; 0 for fewer than two packets. */
double stage_rate(const struct role *r, unsigned stage);
/* Sums the sequence statistics of all streams of a sink. */
void sink_total(const struct sink *s, struct sequence *sum);

#endif
