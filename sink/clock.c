/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>

#include "base/util.h"
#include "clock.h"

/* Slewing moves both clocks alike, so that their difference changes only where CLOCK_REALTIME is
 * set. It is read within MOST_APART_NS, or not at all; less than SET_NS is not a setting. */
#define MOST_APART_NS 20000
#define SET_NS        100000
#define TRIES         3

static bool read_offset(int64_t *offset_ns)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = now_ns(CLOCK_BOOTTIME);
		uint64_t real = now_ns(CLOCK_REALTIME);
		uint64_t after = now_ns(CLOCK_BOOTTIME);

		if (after - before <= MOST_APART_NS) {
			*offset_ns = (int64_t)(real - before - (after - before) / 2);
			return true;
		}
	}
	return false;
}

bool clock_note(struct host_clock *c, int64_t offset_ns)
{
	int64_t by = offset_ns - c->offset_ns;
	bool was_set = c->known && llabs(by) >= SET_NS;

	if (was_set)
		c->set_ns += by;
	if (was_set || !c->known)
		c->offset_ns = offset_ns;
	c->known = true;
	return was_set;
}

bool clock_check(struct host_clock *c)
{
	int64_t offset_ns;

	return read_offset(&offset_ns) && clock_note(c, offset_ns);
}

/* How the kernel judges its clock: what keeps it (NTP, PTP) reports so to the kernel. */
static int put_state(char *text, size_t size)
{
	struct timex t = {0};

	if (adjtimex(&t) < 0)
		return snprintf(text, size, "synchronized=unknown");
	return snprintf(text, size, "synchronized=%s maxerror_us=%ld esterror_us=%ld",
		t.status & STA_UNSYNC ? "no" : "yes", t.maxerror, t.esterror);
}

void clock_of_interface(char text[CLOCK_TEXT_LEN], const char *source, uint64_t tsc_hz)
{
	int n = snprintf(text, CLOCK_TEXT_LEN, "clock: timestamp=%s ", source);

	if (tsc_hz)
		n += snprintf(text + n, CLOCK_TEXT_LEN - (size_t)n, "tsc_hz=%" PRIu64 " ", tsc_hz);
	put_state(text + n, CLOCK_TEXT_LEN - (size_t)n);
}

void clock_report(char text[CLOCK_TEXT_LEN], const struct host_clock *c)
{
	int n = snprintf(text, CLOCK_TEXT_LEN, "clock: ");

	n += put_state(text + n, CLOCK_TEXT_LEN - (size_t)n);
	if (c->set_ns)
		snprintf(text + n, CLOCK_TEXT_LEN - (size_t)n, " set_ns=%+" PRId64, c->set_ns);
}
