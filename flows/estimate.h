/* SPDX-License-Identifier: BSD-3-Clause */
/* Estimates about all packets from a sample of one of N. */
#ifndef RINGTAP_FLOWS_ESTIMATE_H
#define RINGTAP_FLOWS_ESTIMATE_H

#include <math.h>
#include <stdint.h>

/* An estimate, and how far the truth is from it at most, in 95 of 100 cases. All packets: 0. NAN:
 * too few packets to say. */
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

/* The part that `packets` are of `all`, which were chosen. */
static inline struct estimate estimate_share(uint32_t every, uint64_t packets, uint64_t all)
{
	double k = (double)packets, m = (double)all, n = every;

	if (!all)
		return (struct estimate){0, 0};
	return (struct estimate){
		.value = k / m, .bound = 1.96 * sqrt((k + 1) * (1 - k / m) * (1 - 1 / n)) / m};
}

/* The mean of a value of each packet; see estimate_sum(). Two packets show how much it varies. */
static inline struct estimate estimate_mean(
	uint32_t every, uint64_t packets, double sum, double squares)
{
	double k = (double)packets, n = every, spread;

	if (!packets)
		return (struct estimate){0, 0};
	spread = packets > 1 ? fmax(squares - sum * sum / k, 0) / (k - 1) : NAN;
	return (struct estimate){
		.value = sum / k, .bound = every > 1 ? 1.96 * sqrt(spread / k * (1 - 1 / n)) : 0};
}

/* The shares whose quantiles of `packets` values the true quantile is between. Above 1: too few
 * packets to say. (Confidence intervals by order statistics.) */
static inline void estimate_quantile(
	uint32_t every, uint64_t packets, double share, double *low, double *high)
{
	double k = (double)packets, n = every;
	double far = 1.96 * sqrt(k * share * (1 - share) * (1 - 1 / n));

	*low = fmax((k * share - far) / k, 0);
	*high = (k * share + far + (every > 1)) / k;
}

#endif
