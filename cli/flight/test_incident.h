/* SPDX-License-Identifier: BSD-3-Clause */
/* An incident of an application that tests make up: a window of four seconds, with a snapshot at
 * its beginning and after each second. */
#ifndef RINGTAP_CLI_FLIGHT_TEST_INCIDENT_H
#define RINGTAP_CLI_FLIGHT_TEST_INCIDENT_H

#include <stdlib.h>
#include <string.h>

#include "base/test_util.h"
#include "common/test_now.h"
#include "measure/fake_monitor.h"
#include "flight.h"
#include "history.h"

#define SECONDS 4
#define STEP_NS (NS_PER_S / 1000)

static struct flight f;
static struct incident incident;
static struct trigger trigger = {.text = "gap > 50us"};

/* A snapshot each second, of a window that begins with the first one. */
static int begin(void **state)
{
	test_now_set(TEST_NOW_MONO_NS, TEST_NOW_REAL_NS);
	fake_apps_begin();
	memset(&f, 0, sizeof(f));
	f.app.name = (char *)"app";
	f.tsc_hz = NS_PER_S;
	incident = (struct incident){.f = &f,
		.name = "x",
		.trigger = &trigger,
		.from_ns = TEST_NOW_REAL_NS,
		.to_ns = TEST_NOW_REAL_NS + SECONDS * NS_PER_S - 1,
		.step_ns = STEP_NS,
		.step_count = SECONDS * NS_PER_S / STEP_NS};
	for (int k = 0; k < INCIDENT_CURVES; k++)
		incident.steps[k] = calloc(incident.step_count, sizeof(uint32_t));
	incident.event.from_ns = TEST_NOW_REAL_NS + 2 * NS_PER_S;
	incident.event.to_ns = incident.event.from_ns + 61000;
	for (unsigned i = 0; i <= SECONDS; i++) {
		f.history[f.history_count++] = fake_snapshot(&fake_apps[0], i * NS_PER_S);
		rt_sleep_ns(NS_PER_S);
	}
	return 0;
}

static int end(void **state)
{
	for (int k = 0; k < INCIDENT_CURVES; k++)
		free(incident.steps[k]);
	history_free(&f);
	fake_apps_end();
	return 0;
}

static struct ringtap_thread_stats *thread(unsigned second)
{
	return (struct ringtap_thread_stats *)ringtap_snapshot_thread(f.history[second], 0);
}

/* In the snapshot of this second: a gap, ns from the window's beginning. */
static inline void gap_in(unsigned second, uint64_t at_ns, uint64_t ns, bool open)
{
	struct ringtap_thread_stats *t = thread(second);

	*(struct ringtap_gap *)ringtap_thread_gap(t, t->gap_count++) = (struct ringtap_gap){
		.start_ns = TEST_NOW_REAL_NS + at_ns, .ns = ns, .packets = 32, .open = open};
}

/* Logged, as soon as intervals_on_all() was called. */
__attribute__((unused)) static void log_in(
	uint16_t kind, uint64_t at_ns, uint64_t ns, uint32_t packets)
{
	struct intervals *s = &f.intervals;

	s->kept[s->count++ % INTERVALS_KEPT] =
		(struct ringtap_interval){.start_ns = TEST_NOW_REAL_NS + at_ns,
			.ns = ns,
			.packets = packets,
			.port = RINGTAP_NO_INDEX,
			.kind = kind};
}

__attribute__((unused)) static void intervals_on_all(void)
{
	f.intervals.kept = calloc(INTERVALS_KEPT, sizeof(*f.intervals.kept));
	for (unsigned i = 0; i < f.history_count; i++)
		f.history[i]->collectors |= RINGTAP_GAPS | RINGTAP_BUSY | RINGTAP_INTERVALS;
}

static inline void burst_in(unsigned second, uint64_t at_ns)
{
	struct ringtap_thread_stats *t = thread(second);

	*(struct ringtap_microburst *)ringtap_thread_microburst(t, t->microburst_count++) =
		(struct ringtap_microburst){
			.start_ns = TEST_NOW_REAL_NS + at_ns, .ns = 700000, .packets = 123};
}

#endif
