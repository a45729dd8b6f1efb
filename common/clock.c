/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <time.h>

#include "clock.h"

#define BASELINE_NS 30000000000ull /* the rate is measured over half of it up to so long */
#define SETTLED_NS  1000000000ull  /* over less, jitter makes a worse rate than a known one */
#define DOUBTS_MAX  2              /* so many steps in a row are none: the rate must be wrong */

int rt_clock_read(const struct rt_seg_clock *c, struct rt_clock_line *out)
{
	for (int tries = 0; tries < 1000; tries++) {
		/* Pairs with the release stores of seq in rt_clock_publish(). */
		uint32_t s = rt_load_acquire(&c->seq);

		out->tsc_base = rt_load_acquire(&c->tsc_base);
		out->ns_base = rt_load_acquire(&c->ns_base);
		out->mult = rt_load_acquire(&c->mult);
		if (!(s & 1) && rt_load(&c->seq) == s)
			return 0;
		rt_pause();
	}
	return -EAGAIN;
}

void rt_clock_publish(struct rt_seg_clock *c, const struct rt_clock_line *line)
{
	uint32_t s = c->seq;

	/* The fields are released, so that whoever sees one of them also sees seq odd. */
	rt_store(&c->seq, s + 1);
	rt_store_release(&c->tsc_base, line->tsc_base);
	rt_store_release(&c->ns_base, line->ns_base);
	rt_store_release(&c->mult, line->mult);
	rt_store_release(&c->seq, s + 2);
}

static uint64_t mult_of(double ns_per_tick)
{
	return (uint64_t)(ns_per_tick * (double)(1ull << RT_CLOCK_SHIFT) + 0.5);
}

static void new_baseline(struct rt_clock *c, uint64_t tsc, uint64_t ns)
{
	c->first_tsc = c->mid_tsc = tsc;
	c->first_ns = c->mid_ns = ns;
}

void rt_clock_init(struct rt_clock *c, uint64_t tsc0, uint64_t ns0, uint64_t tsc1, uint64_t ns1,
	uint64_t hz_guess)
{
	double guess = 1e9 / (double)(hz_guess ? hz_guess : 1000000000ull);
	double rate = 0;

	if (tsc1 - tsc0 > hz_guess / 1000 && ns1 > ns0)
		rate = (double)(ns1 - ns0) / (double)(tsc1 - tsc0);
	/* CLOCK_REALTIME may have been set between the samples: believe them only if near. */
	if (hz_guess && (rate < guess * 0.9 || rate > guess * 1.1))
		rate = 0;
	*c = (struct rt_clock){.last_tsc = tsc1, .last_ns = ns1, .guessed = true};
	new_baseline(c, rate > 0 ? tsc0 : tsc1, rate > 0 ? ns0 : ns1);
	c->rate = rate > 0 ? rate : guess;
	c->line =
		(struct rt_clock_line){.tsc_base = tsc1, .ns_base = ns1, .mult = mult_of(c->rate)};
}

/* Updates the measured rate from the new sample; a step of CLOCK_REALTIME (the sample is
 * more than RT_CLOCK_JUMP_NS off the rate measured so far) starts a new baseline. */
static void measure(struct rt_clock *c, uint64_t tsc, uint64_t ns)
{
	double expect = (double)(tsc - c->last_tsc) * c->rate;
	double off = (double)(int64_t)(ns - c->last_ns) - expect;
	/* A first guess of the rate may be off by percents: only a step is larger. */
	double limit = RT_CLOCK_JUMP_NS + (c->guessed ? expect * 0.1 : 0);
	uint64_t age = ns - c->first_ns;

	c->last_tsc = tsc;
	c->last_ns = ns;
	if (off > limit || off < -limit) {
		new_baseline(c, tsc, ns);
		c->guessed |= ++c->doubts >= DOUBTS_MAX;
		return;
	}
	c->doubts = 0;
	if (c->guessed || age >= SETTLED_NS)
		c->rate = (double)age / (double)(tsc - c->first_tsc);
	if (age >= SETTLED_NS)
		c->guessed = false;
	/* Let the baseline follow: a frequency that NTP changed must show. */
	if (age > BASELINE_NS) {
		c->first_tsc = c->mid_tsc;
		c->first_ns = c->mid_ns;
	}
	if (ns - c->mid_ns > BASELINE_NS / 2) {
		c->mid_tsc = tsc;
		c->mid_ns = ns;
	}
}

void rt_clock_update(struct rt_clock *c, uint64_t tsc, uint64_t ns)
{
	double since_ns = (double)(tsc - c->last_tsc) * c->rate;
	int64_t err;
	double rate;

	if ((int64_t)(tsc - c->last_tsc) <= 0)
		return;
	measure(c, tsc, ns);
	c->line.ns_base = rt_clock_ns(&c->line, tsc); /* where we are: never steps back */
	c->line.tsc_base = tsc;
	err = (int64_t)(ns - c->line.ns_base);
	rate = c->rate;
	if (err > RT_CLOCK_JUMP_NS) {
		c->line.ns_base = ns;
	} else if (err < -RT_CLOCK_JUMP_NS) {
		/* As slow as needed to have caught up at the next update. */
		double slow = 1 + (double)err / since_ns;

		rate *= slow < 1.0 / RT_CLOCK_SLOW ? 1.0 / RT_CLOCK_SLOW : slow;
	} else {
		/* Gone in a second, or at the next update: if it went on longer than the error
		 * lasts, the error would come back larger each time. */
		double slew = (double)err / (since_ns > 1e9 ? since_ns : 1e9);
		double max = RT_CLOCK_SLEW_PPM * 1e-6;

		rate *= 1 + (slew > max ? max : slew < -max ? -max : slew);
	}
	c->line.mult = mult_of(rate);
}

static void sample(clockid_t clock, uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		struct timespec ts;
		uint64_t a = rt_tsc(), b;

		clock_gettime(clock, &ts);
		b = rt_tsc();
		if (b - a < best) {
			best = b - a;
			*tsc = a + (b - a) / 2;
			*ns = (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
		}
	}
}

void rt_clock_sample(uint64_t *tsc, uint64_t *ns)
{
	sample(CLOCK_REALTIME, tsc, ns);
}

void rt_clock_sample_mono(uint64_t *tsc, uint64_t *ns)
{
	sample(CLOCK_MONOTONIC, tsc, ns);
}
