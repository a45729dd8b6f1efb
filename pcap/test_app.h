/* SPDX-License-Identifier: BSD-3-Clause */
/* An application whose session a test fills and corrupts, and a handle on it. Static: each file of
 * tests has its own. */
#ifndef RINGTAP_PCAP_TEST_APP_H
#define RINGTAP_PCAP_TEST_APP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/ipc.h"
#include "handle.h"
#include "reader/test_peer.h"

static struct test_session session;
static struct test_peer peer;
static char runtime[64], apps[80], app[96];
static pcap_t *handle;
static int filters_refused_with; /* 0: accepted */
static int refusals;             /* number of refusals; later ones are accepted */

/* Accepts or refuses a filter; answers all other messages as a probe does. */
static inline bool answer(struct test_peer *p, int sock, uint16_t type)
{
	struct rt_msg_filtered m = {.text = "no"};

	if (type != RT_MSG_FILTER)
		return test_peer_answer(p, sock, type);
	if (refusals) {
		refusals--;
		m.code = filters_refused_with;
	}
	rt_msg_init(&m.h, RT_MSG_FILTERED, sizeof(m));
	return rt_msg_send(sock, &m.h, NULL, 0) == 0;
}

/* An application "app" in a runtime folder. */
static inline int set_up(void **state)
{
	test_session_make(&session, 2, TEST_RING);
	peer = (struct test_peer){.session = &session, .answer = answer};
	test_peer_start(&peer, true);
	filters_refused_with = refusals = 0;
	strcpy(runtime, "/tmp/ringtap-test.XXXXXX");
	assert_non_null(mkdtemp(runtime));
	snprintf(apps, sizeof(apps), "%s/dpdk", runtime);
	snprintf(app, sizeof(app), "%s/app", apps);
	assert_int_equal(mkdir(apps, 0700), 0);
	assert_int_equal(symlink(peer.dir, app), 0);
	return setenv("XDG_RUNTIME_DIR", runtime, 1);
}

static inline int tear_down(void **state)
{
	if (handle)
		pcap_close(handle);
	handle = NULL;
	unlink(app);
	rmdir(apps);
	rmdir(runtime);
	test_peer_stop(&peer);
	test_session_free(&session);
	return 0;
}

static inline int set_up_open(void **state)
{
	char err[PCAP_ERRBUF_SIZE] = "";

	if (set_up(state))
		return -1;
	handle = pcap_open_live("ringtap:app:0", 0, 1, 20, err);
	if (!handle)
		fail_msg("%s", err);
	return 0;
}

/* Puts n packets of len bytes into ring 0. Returns their time. */
static inline uint64_t put(unsigned n, uint32_t len)
{
	uint64_t now = test_now(&session);

	for (unsigned i = 0; i < n; i++)
		test_put(&session, 0, now, 0, len);
	test_publish(&session, 0, now);
	return now;
}

static inline void count(u_char *user, const struct pcap_pkthdr *h, const u_char *data)
{
	++*(int *)user;
}

static inline void do_not_wait(void)
{
	char err[PCAP_ERRBUF_SIZE];

	assert_int_equal(pcap_setnonblock(handle, 1, err), 0);
}

#define closed(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define opened(f) cmocka_unit_test_setup_teardown(f, set_up_open, tear_down)

#endif
