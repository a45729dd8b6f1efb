/* SPDX-License-Identifier: BSD-3-Clause */
/* Reasons that this program and libraries of it give for the packets that they drop. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ids.h"
#include "probe/test_eal.h"
#include "probe/test_fates.h"
#include "probe/test_ports.h"
#include "reason.h"
#include "ringtap/reason.h"
#include "test_reason.h"

#define TEXTS 1000u

/* Freed, and received again: the number in the record of the packet before. */
static uint32_t drop(struct rte_mbuf *m)
{
	struct test_record r;

	test_stamp(m);
	rt_fates_feed(&session->rings[0], test_tap(2, RT_DIR_RX), &m, 1, rt_tsc());
	assert_true(test_next_record(&r));
	test_offer(m);
	return r.flags >> RT_REASON_SHIFT;
}

static uint32_t drop_for(const char *reason)
{
	struct rte_mbuf *m = test_receive(1);

	ringtap_reason(m, reason);
	return drop(m);
}

static const char *text_of(uint32_t number)
{
	assert_in_range(number, 1, RT_FATE_REASONS);
	return session->shm.fate_reasons[number - 1];
}

static void test_a_reason_is_in_the_record_of_its_packet(void **state)
{
	struct rte_mbuf *m;

	assert_string_equal(text_of(drop_for("acl")), "acl");
	assert_string_equal(text_of(drop_for("no route")), "no route");
	assert_int_equal(drop_for("acl"), drop_for("acl"));
	assert_int_equal(drop_for(""), 0);
	assert_int_equal(drop_for(NULL), 0);
	m = test_receive(1);
	ringtap_reason(m, "acl");
	ringtap_reason(m, "policer");
	assert_string_equal(text_of(drop(m)), "policer");
	assert_int_equal(drop(test_receive(1)), 0); /* it was of the packet before */
}

/* A stale id is in it. */
static void test_a_packet_of_the_application_has_no_reason(void **state)
{
	struct rte_mbuf *m = test_receive(1);

	rte_pktmbuf_reset(m); /* freed, and allocated */
	ringtap_reason(m, "acl");
	assert_int_equal(test_entry(m)->reason, 0);
	assert_int_equal(drop(m), 0);
	/* With its flags reset it is a received one still. */
	m = test_receive(1);
	m->ol_flags = 0;
	ringtap_reason(m, "acl");
	assert_string_equal(text_of(drop(m)), "acl");
	/* Never received. */
	m = rte_pktmbuf_alloc(pool);
	ringtap_reason(m, "acl");
	rte_pktmbuf_free(m);
}

static void test_a_clone_gives_the_reason_of_its_packet(void **state)
{
	struct rte_mbuf *m = test_receive(1), *clone = rte_pktmbuf_clone(m, pool);

	assert_non_null(clone);
	ringtap_reason(clone, "mirror full");
	rte_pktmbuf_free(clone);
	assert_string_equal(text_of(drop(m)), "mirror full");
}

static void test_texts_are_bounded(void **state)
{
	uint32_t numbers[RT_FATE_OTHERS + 1] = {0}, distinct = 0;
	char text[200];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	assert_int_equal(strlen(text_of(drop_for(text))), RT_NAME_LEN - 1);
	for (unsigned i = 0; i < TEXTS; i++) {
		snprintf(text, sizeof(text), "reason %u", i);
		numbers[drop_for(text)]++;
	}
	assert_int_equal(numbers[0], 0);
	for (uint32_t i = 1; i <= RT_FATE_REASONS; i++) {
		assert_in_range(numbers[i], 0, 1);
		distinct += numbers[i];
	}
	assert_in_range(distinct, 200, RT_FATE_REASONS);
	assert_int_equal(distinct + numbers[RT_FATE_OTHERS], TEXTS);
	assert_int_equal(numbers[drop_for("reason 0")], 1); /* known before the table was full */
}

/* ---- objects ---- */

struct library {
	void *handle;
	void (*give)(struct rte_mbuf *m, const char *reason);
	int (*wanted)(void);
};

static const char *folder;

static void load(struct library *l, const char *name)
{
	char path[4096];
	void *give, *wanted;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!l->handle)
		fail_msg("%s", dlerror());
	give = dlsym(l->handle, "test_give");
	wanted = dlsym(l->handle, "test_wanted");
	assert_non_null(give);
	assert_non_null(wanted);
	memcpy(&l->give, &give, sizeof(give));
	memcpy(&l->wanted, &wanted, sizeof(wanted));
}

static void test_each_object_has_its_site(void **state)
{
	struct library a, b, broken;
	struct rte_mbuf *m;

	load(&a, "libtest-reason.so");
	load(&broken, "libtest-reason-broken.so");
	assert_false(a.wanted());
	test_fates_begin(NULL);
	assert_true(a.wanted());
	assert_false(broken.wanted());
	assert_true(ringtap_reason_wanted());
	load(&b, "libtest-reason-lies.so");
	assert_false(b.wanted());
	rt_reason_tick();
	assert_true(b.wanted());
	m = test_receive(0);
	a.give(m, "from a library");
	assert_string_equal(text_of(drop(m)), "from a library");
	m = test_receive(0);
	b.give(m, "from a library");
	assert_string_equal(text_of(drop(m)), "from a library");
	dlclose(b.handle);
	rt_reason_tick();
	assert_string_equal(text_of(drop_for("acl")), "acl");
	load(&b, "libtest-reason-lies.so");
	test_fates_end(NULL);
	assert_false(a.wanted());
	assert_false(b.wanted());
	assert_false(ringtap_reason_wanted());
	rt_reason_tick(); /* nobody listens */
	assert_false(b.wanted());
	dlclose(a.handle);
	dlclose(broken.handle);
	dlclose(b.handle);
}

static struct rt_session *open_more(void)
{
	const struct rt_msg_target target = {.queue = RT_QUEUE_ALL,
		.directions = RT_TARGET_RX | RT_TARGET_TX,
		.snaplen = TEST_SNAP,
		.insn_first = RT_NO_FILTER};
	const struct rt_msg_open open = {.ids = RT_IDS_ON | RT_IDS_FATES, .buffer_size = 4 << 20};
	struct rt_session *s = test_session_open(&open, &target, NULL);

	test_session_arm(s, test_clock());
	return s;
}

static void test_the_last_session_ends_it(void **state)
{
	struct rt_session *more = open_more();

	assert_string_equal(text_of(drop_for("acl")), "acl");
	test_session_end(more);
	rt_session_free(more);
	assert_true(ringtap_reason_wanted());
	assert_string_equal(text_of(drop_for("acl")), "acl");
	test_session_end(session);
	assert_false(ringtap_reason_wanted());
}

/* ---- threads ---- */

#define ATTACHES 50

static struct rte_mbuf *shared;
static bool quit;

static void *give_on(void *arg)
{
	const char *const texts[] = {"one", "two", "three"};

	for (unsigned i = 0; !rt_load(&quit); i++)
		ringtap_reason(shared, texts[i % 3]);
	return NULL;
}

/* Sessions come and go while threads give reasons: no use of what has been freed. */
static void test_sessions_end_while_threads_give_reasons(void **state)
{
	pthread_t threads[2];

	shared = test_receive(1);
	rt_store(&quit, false);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, give_on, NULL), 0);
	for (unsigned i = 0; i < ATTACHES; i++) {
		struct rt_session *more = open_more();

		test_session_end(more);
		rt_session_free(more);
	}
	rt_store(&quit, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ringtap_reason(shared, "four");
	assert_string_equal(text_of(drop(shared)), "four");
}

#define with_fates(f) cmocka_unit_test_setup_teardown(f, test_fates_begin, test_fates_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		with_fates(test_a_reason_is_in_the_record_of_its_packet),
		with_fates(test_a_packet_of_the_application_has_no_reason),
		with_fates(test_a_clone_gives_the_reason_of_its_packet),
		with_fates(test_texts_are_bounded),
		with_fates(test_the_last_session_ends_it),
		with_fates(test_sessions_end_while_threads_give_reasons),
		cmocka_unit_test(test_each_object_has_its_site),
	};

	folder = argv[1];
	test_stats_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
