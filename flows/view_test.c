/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "view.h"

/* A packet counts at the thread that the ledger has when it is added. */
static void threads_have_names(void **state)
{
	static const struct {
		struct ledger_thread thread;
		uint8_t direction;
		const char *name;
	} cases[] = {
		{{1, 4711}, RINGTAP_RX, "lcore 1 (4711), received"},
		{{1, 4711}, RINGTAP_TX, "lcore 1 (4711), sent"},
		{{1, 4712}, RINGTAP_RX, "lcore 1 (4712), received"},
		{{1, 0}, RINGTAP_RX, "lcore 1, received"},
		{{RINGTAP_NO_INDEX, 4712}, RINGTAP_RX, "thread 4712, received"},
		{{RINGTAP_NO_INDEX, 0}, RINGTAP_RX, "thread unknown, received"},
	};
	enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
	static const uint8_t frame[60];
	const struct ledger_flow *top[COUNT];
	struct ledger_thread thread;
	char text[LEDGER_TEXT];
	struct fates_session s = {.info.host_pid = 0}; /* not visible: its threads have no names */
	struct ledger t;

	assert_int_equal(ledger_init(&t, LEDGER_THREAD, 100, false), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		const struct ringtap_packet p = {.data = frame,
			.caplen = sizeof(frame),
			.length = sizeof(frame),
			.direction = cases[i].direction};

		t.thread = cases[i].thread;
		for (unsigned n = 0; n < COUNT - i; n++)
			ledger_add(&t, &p, LINKTYPE_ETHERNET);
	}
	assert_int_equal(ledger_top(&t, LEDGER_BY_PACKETS, true, top, COUNT), COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_string_equal(ledger_text(&t, &top[i]->key, &s, text), cases[i].name);
		assert_true(ledger_thread(&t, &top[i]->key, &thread));
		assert_int_equal(thread.tid, cases[i].thread.tid);
		assert_int_equal(top[i]->packets, COUNT - i);
	}
	t.view = LEDGER_5_TUPLE;
	assert_false(ledger_thread(&t, &top[0]->key, &thread));
	ledger_free(&t);
}

/* As the kernel has it, of a process that is visible. */
static void a_visible_thread_has_its_name(void **state)
{
	static const uint8_t frame[60];
	const struct ringtap_packet p = {.data = frame, .caplen = 60, .length = 60};
	struct fates_session s = {.info.host_pid = (uint32_t)getpid()};
	const struct ledger_flow *top[1];
	char text[LEDGER_TEXT], expected[LEDGER_TEXT];
	struct ledger t;

	assert_int_equal(ledger_init(&t, LEDGER_THREAD, 100, false), 0);
	t.thread = (struct ledger_thread){7, (uint32_t)getpid()};
	assert_int_equal(prctl(PR_SET_NAME, "poller"), 0);
	ledger_add(&t, &p, LINKTYPE_ETHERNET);
	assert_int_equal(ledger_top(&t, LEDGER_BY_PACKETS, true, top, 1), 1);
	snprintf(expected, sizeof(expected), "lcore 7 (poller, %d), received", getpid());
	assert_string_equal(ledger_text(&t, &top[0]->key, &s, text), expected);
	ledger_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_have_names),
		cmocka_unit_test(a_visible_thread_has_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
