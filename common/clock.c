/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "clock.h"
#include "now.h"

#define BASELINE_NS \
	30000000000ull /* the longest baseline of the rate; it begins again at half of that */
#define SETTLED_NS 1000000000ull /* over less, jitter makes a worse rate than a known one */
#define EARLY_NS   1000000ull    /* two samples that are closer together give no rate */
#define WAIT_NS    1000000ull
#define WAITS      1000
#define AGREE      0.01 /* the largest relative difference of two equal rates */

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

int rt_clock_wait(const struct rt_seg_clock *c, struct rt_clock_line *out)
{
	int ret = rt_clock_read(c, out);

	for (int i = 0; i < WAITS && ret; i++) {
		rt_sleep_ns(WAIT_NS);
		ret = rt_clock_read(c, out);
	}
	return ret;
}

void rt_clock_publish(struct rt_seg_clock *c, const struct rt_clock_line *line)
{
	uint32_t s = c->seq;

	/* Release the fields too, so that a reader that finds one of them also finds seq odd. */
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

/* 0: the two give none. */
static double rate_between(const struct rt_clock_point *a, const struct rt_clock_point *b)
{
	int64_t ticks = (int64_t)(b->tsc - a->tsc);

	/* The counter's behaviour while the machine slept is unknown. */
	if (ticks <= 0 || b->mono_ns < a->mono_ns + EARLY_NS ||
		b->asleep_ns > a->asleep_ns + RT_CLOCK_JUMP_NS)
		return 0;
	return (double)(b->mono_ns - a->mono_ns) / (double)ticks;
}

void rt_clock_begin(struct rt_clock *c, const struct rt_clock_point *early,
	const struct rt_clock_point *now, uint64_t hz_guess)
{
	double guess = 1e9 / (double)(hz_guess ? hz_guess : 1000000000ull);
	double rate = rate_between(early, now);

	/* The counter may have jumped in between. */
	if (hz_guess && (rate < guess * 0.9 || rate > guess * 1.1))
		rate = 0;
	*c = (struct rt_clock){.last_tsc = now->tsc, .last_ns = now->mono_ns, .guessed = rate <= 0};
	new_baseline(c, now->tsc, now->mono_ns);
	c->rate = rate > 0 ? rate : guess;
	c->line = (struct rt_clock_line){
		.tsc_base = now->tsc, .ns_base = now->real_ns, .mult = mult_of(c->rate)};
}

/* The last interval disagrees with the rate: the counter has jumped, or stood still. If the one
 * before disagreed in the same way, the rate has changed (a guest on another machine). */
static void doubt(struct rt_clock *c, double ticks, double passed_ns)
{
	double rate = ticks > 0 ? passed_ns / ticks : 0;

	if (rate > 0 && rate < c->other_rate * (1 + AGREE) && rate > c->other_rate * (1 - AGREE)) {
		c->rate = rate;
		c->guessed = true;
	}
	c->other_rate = rate;
}

/* Updates the measured rate. True: the counter has jumped or stood still. */
static bool measure(struct rt_clock *c, uint64_t tsc, uint64_t ns)
{
	double ticks = (double)(int64_t)(tsc - c->last_tsc), passed = (double)(ns - c->last_ns);
	double off = passed - ticks * c->rate;
	double limit = RT_CLOCK_JUMP_NS + (c->guessed ? passed * 0.1 : 0);
	uint64_t age = ns - c->first_ns;

	c->last_tsc = tsc;
	c->last_ns = ns;
	if (off > limit || off < -limit) {
		new_baseline(c, tsc, ns);
		doubt(c, ticks, passed);
		return true;
	}
	c->other_rate = 0;
	if (c->guessed || age >= SETTLED_NS)
		c->rate = (double)age / (double)(tsc - c->first_tsc);
	if (age >= SETTLED_NS)
		c->guessed = false;
	/* Move the baseline: a frequency that NTP changed must show. */
	if (age > BASELINE_NS) {
		c->first_tsc = c->mid_tsc;
		c->first_ns = c->mid_ns;
	}
	if (ns - c->mid_ns > BASELINE_NS / 2) {
		c->mid_tsc = tsc;
		c->mid_ns = ns;
	}
	return false;
}

/* The latest time that the line can have given until now. */
static uint64_t given_by(const struct rt_clock *c, uint64_t tsc, uint64_t unjumped_ns, bool jumped)
{
	int64_t d = rt_clock_delta(&c->line, tsc);

	/* Before a jump the line went on as usual; after too long a jump it is not used. */
	if (!rt_clock_is_near(d) || d < 0 || (jumped && (uint64_t)d < unjumped_ns))
		return c->line.ns_base + unjumped_ns;
	return c->line.ns_base + (uint64_t)d;
}

/* The factor on the rate that makes an error vanish. */
static double correction(int64_t err, double passed_ns)
{
	double max = RT_CLOCK_SLEW_PPM * 1e-6, slew;

	if (err < -RT_CLOCK_JUMP_NS) {
		/* As slow as needed to have caught up at the next update. */
		double slow = 1 + (double)err / passed_ns;

		return slow < 1.0 / RT_CLOCK_SLOW ? 1.0 / RT_CLOCK_SLOW : slow;
	}
	/* Gone in a second, or at the next update: a correction that lasts longer than the error
	 * would overshoot, more each time. */
	slew = (double)err / (passed_ns > 1e9 ? passed_ns : 1e9);
	return 1 + (slew > max ? max : slew < -max ? -max : slew);
}

void rt_clock_follow(struct rt_clock *c, const struct rt_clock_point *p)
{
	double speed = (double)c->line.mult / (double)mult_of(c->rate);
	uint64_t passed = p->mono_ns - c->last_ns;
	int64_t err;
	bool jumped;

	if (p->mono_ns <= c->last_ns)
		return;
	jumped = measure(c, p->tsc, p->mono_ns);
	c->line.ns_base = given_by(c, p->tsc, (uint64_t)((double)passed * speed), jumped);
	c->line.tsc_base = p->tsc;
	err = (int64_t)(p->real_ns - c->line.ns_base);
	if (err > RT_CLOCK_JUMP_NS) {
		c->line.ns_base = p->real_ns;
		err = 0;
	}
	c->line.mult = mult_of(c->rate * correction(err, (double)passed));
}

static struct rt_clock_point point(uint64_t tsc, uint64_t ns)
{
	return (struct rt_clock_point){.tsc = tsc, .mono_ns = ns, .real_ns = ns};
}

void rt_clock_init(struct rt_clock *c, uint64_t tsc0, uint64_t ns0, uint64_t tsc1, uint64_t ns1,
	uint64_t hz_guess)
{
	const struct rt_clock_point early = point(tsc0, ns0), now = point(tsc1, ns1);

	rt_clock_begin(c, &early, &now, hz_guess);
}

void rt_clock_update(struct rt_clock *c, uint64_t tsc, uint64_t ns)
{
	const struct rt_clock_point p = point(tsc, ns);

	rt_clock_follow(c, &p);
}

uint64_t rt_clock_coarse(void)
{
	return rt_time_ns(CLOCK_REALTIME_COARSE);
}

void rt_clock_take(struct rt_clock_point *p)
{
	uint64_t best = UINT64_MAX;

	/* The shortest of a few tries, in ns: a slow counter may not tick meanwhile. */
	for (int i = 0; i < 8; i++) {
		uint64_t mono = rt_time_ns(CLOCK_MONOTONIC), tsc = rt_tsc();
		uint64_t real = rt_time_ns(CLOCK_REALTIME), after = rt_tsc();
		uint64_t ns = rt_time_ns(CLOCK_MONOTONIC) - mono;

		if (ns >= best)
			continue;
		best = ns;
		*p = (struct rt_clock_point){
			.tsc = tsc + (after - tsc) / 2, .mono_ns = mono + ns / 2, .real_ns = real};
	}
	p->asleep_ns = rt_time_ns(CLOCK_BOOTTIME) - rt_time_ns(CLOCK_MONOTONIC);
}

static void sample(clockid_t clock, uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t a = rt_tsc(), now = rt_time_ns(clock), b = rt_tsc();

		if (b - a < best) {
			best = b - a;
			*tsc = a + (b - a) / 2;
			*ns = now;
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
