/* SPDX-License-Identifier: BSD-3-Clause */
/* Estimates about all packets from a sample of one of N. */
#ifndef RINGTAP_FLOWS_ESTIMATE_H
#define RINGTAP_FLOWS_ESTIMATE_H

#include <math.h>
#include <stdint.h>

/* An estimate, and how far the truth is from it at most, in 95 of 100 cases. All packets: 0. */
struct estimate {
	double value, bound;
};

/* Each packet was chosen with probability 1/N, independently: the number that was chosen has a
 * binomial distribution. `sum` adds up a value of each of `packets` chosen ones, `squares` its
 * square; one more packet of the mean keeps bounds of few packets honest. */
static inline struct estimate estimate_sum(
	uint32_t every, uint64_t packets, double sum, double squares)
{
	double mean = packets ? sum / (double)packets : 0, n = every;

	return (struct estimate){
		.value = n * sum, .bound = 1.96 * n * sqrt((squares + mean * mean) * (1 - 1 / n))};
}

static inline struct estimate estimate_packets(uint32_t every, uint64_t packets)
{
	return estimate_sum(every, packets, (double)packets, (double)packets);
}

#endif
