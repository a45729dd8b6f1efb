/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of one flow as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detail.h"
#include "view.h"

static struct ledger ledger;
static struct flows_detail detail;
static struct fates_session session = {
	.app = {.name = "it's", .dir = "/run/dpdk/it's", .ports = {"p0"}, .port_count = 1}};

static int set_up(void **state)
{
	memset(&detail, 0, sizeof(detail));
	setenv("TZ", "UTC", 1);
	return ledger_init(&ledger, LEDGER_5_TUPLE, 100, false) ||
	       ringtap_capture_create(&session.cap, NULL);
}

static int tear_down(void **state)
{
	ringtap_capture_close(session.cap);
	ledger_free(&ledger);
	return 0;
}

static struct flow_key take(uint8_t host, uint64_t ns)
{
	const uint8_t frame[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 46 << 2, 0, 46,
		0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 192, 0, 2, 1, 4, 0, 0, 53};
	const struct ringtap_packet p = {.data = frame,
		.caplen = sizeof(frame),
		.length = sizeof(frame),
		.direction = RINGTAP_RX,
		.ns = ns};
	struct flow_key k;
	struct headers h;

	headers_read(&h, LINKTYPE_ETHERNET, frame, sizeof(frame));
	flow_key_of(&k, 0, &h);
	if (ns)
		ledger_add(&ledger, &p, LINKTYPE_ETHERNET);
	if (detail.open)
		flows_detail_take(&detail, &ledger, &p, LINKTYPE_ETHERNET);
	return k;
}

static char *text(bool sample)
{
	static char buf[65536];
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	flows_detail_text(&detail, &ledger, &session, sample, f);
	fclose(f);
	return buf;
}

static void newest_packets_of_the_flow_come_first(void **state)
{
	const struct flow_key first = take(1, 0), second = take(2, 0);
	char *shown;

	flows_detail_open(&detail, &first);
	take(1, 1000000001);
	take(2, 1000000002);
	take(1, 1000000003);
	shown = text(true);
	assert_ptr_equal(strstr(shown, "10.0.0.1:1024 > 192.0.2.1:53 UDP\n"), shown);
	assert_non_null(
		strstr(shown, "\n  2 packets of the sample since this was opened, the newest "
			      "first\n  00:00:01.000000003  "));
	assert_non_null(strstr(shown,
		"received, 60 bytes: 10.0.0.1:1024 > 192.0.2.1:53 UDP, TTL 64, DSCP 46\n"
		"  00:00:01.000000001  "));
	assert_null(strstr(shown, "10.0.0.2"));
	assert_non_null(
		strstr(shown, "\n  first seen 00:00:01.000000001, last seen 00:00:01.000000003\n"));
	flows_detail_open(&detail, &second);
	assert_non_null(strstr(text(false), "\n  0 packets since this was opened"));
	flows_detail_open(&detail, NULL);
	assert_false(detail.open);
}

static void only_the_newest_are_kept(void **state)
{
	const struct flow_key k = take(1, 0);
	unsigned lines = 0;

	flows_detail_open(&detail, &k);
	for (uint64_t i = 1; i <= 3 * DETAIL_PACKETS; i++)
		take(1, i);
	assert_int_equal(detail.count, 3 * DETAIL_PACKETS);
	for (const char *at = text(false); (at = strstr(at, "  00:00:00.")); at++)
		lines++;
	assert_int_equal(lines, DETAIL_PACKETS);
	assert_non_null(strstr(text(false), "first\n  00:00:00.000000192  "));
	assert_null(strstr(text(false), "  00:00:00.000000128  "));
}

/* A shell must not read more into the name of an application. */
static void the_command_is_for_a_shell(void **state)
{
	const struct flow_key k = take(1, 0);
	char *record = flows_record(&ledger, &session, &k);

	assert_string_equal(record,
		"ringtap record --tags as-is -f 'udp and src host 10.0.0.1 and dst host 192.0.2.1 and "
		"src port 1024 and dst port 53' -i 'it'\\''s:p0' -w flow.pcapng");
	free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			newest_packets_of_the_flow_come_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_the_newest_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_command_is_for_a_shell, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
