/* SPDX-License-Identifier: BSD-3-Clause */
/* A monitor of a probe that a test plays. Static: each file of tests has its own. */
#ifndef RINGTAP_READER_TEST_MONITOR_H
#define RINGTAP_READER_TEST_MONITOR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reader/stats/monitor_state.h"
#include "test_peer.h"
#include "test_stats.h"

static struct test_stats stats;
static struct test_peer peer;
static struct ringtap_monitor *mon;
static struct ringtap_snapshot *f;
static char err[RT_TEXT_LEN];

static inline int set_up(void **state)
{
	test_stats_make(&stats);
	peer = (struct test_peer){.stats_fd = stats.fd};
	test_peer_start(&peer, true);
	memset(err, 0, sizeof(err));
	return 0;
}

static inline int tear_down(void **state)
{
	ringtap_snapshot_free(f);
	ringtap_monitor_close(mon);
	f = NULL;
	mon = NULL;
	test_peer_stop(&peer);
	test_stats_free(&stats);
	return 0;
}

static inline int attach(void)
{
	return ringtap_monitor_open(&mon, peer.dir,
		&(struct ringtap_monitor_options){.size = sizeof(struct ringtap_monitor_options),
			.collectors = RT_COLLECT_ALL,
			.latency_every = 16},
		err, sizeof(err));
}

static inline int switch_to(unsigned collectors)
{
	const struct ringtap_monitor_options o = {.size = sizeof(o), .collectors = collectors};

	return ringtap_monitor_switch(mon, &o, err, sizeof(err));
}

/* Replaces the last snapshot. */
static inline int take_snapshot(void)
{
	ringtap_snapshot_free(f);
	return ringtap_monitor_read(mon, &f);
}

static inline void must_attach(void)
{
	assert_int_equal(attach(), 0);
	assert_int_equal(take_snapshot(), 0);
}

#define MONITOR_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
