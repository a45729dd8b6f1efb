/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments that ringtap export refuses. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "server.h"

#define X100                                                                                       \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
	"xxxxxxxxxxxx"

static const struct test_refusal refused[] = {
	{"--listen|127.0.0.1:x", STATUS_USAGE,
		"--listen 127.0.0.1:x: 'x' is not a port number from 0 to 65535; give PORT, "
		"ADDRESS:PORT, [IPV6]:PORT or :PORT"},
	{"--listen|127.0.0.1:65536", STATUS_USAGE, "'65536' is not a port number"},
	{"--listen|foo", STATUS_USAGE, "'foo' is not a port number"},
	{"--listen|127.0.0.1:", STATUS_USAGE, "'' is not a port number"},
	{"--listen|" X100 X100 X100 ":1", STATUS_USAGE, "the address is too long"},
	{"--allow-trigger|/", STATUS_USAGE, "'/': no folder with a name"},
	{"--allow-trigger|..", STATUS_USAGE, "'..': no folder with a name"},
	{"--allow-trigger|.", STATUS_USAGE, "'.': no folder with a name"},
	{"--allow-trigger|/a/x|--allow-trigger|/b/x/", STATUS_USAGE,
		"/b/x/': another folder has the same name"},
	{"--users|no-such-user-here", STATUS_USAGE,
		"no-such-user-here: no such user; give names or numbers, or all"},
	{"--users|", STATUS_USAGE, "--users '': no user; give names or numbers, or all"},
	{"--users|,", STATUS_USAGE, "--users ',': no user"},
	{"--host|", STATUS_USAGE, "--host '': no name; give one by which clients reach this host"},
	{"--users|1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", STATUS_USAGE, "more than 16 users"},
	{"--collectors|polls,moon", STATUS_USAGE, "moon"},
	{"--collectors|", STATUS_USAGE, "--collectors"},
	{"--max-samples-in-all|10000001", STATUS_USAGE, "--max-samples-in-all"},
};

static void more_folders_than_there_is_room_for(void **state)
{
	static struct export_triggers triggers;
	static char folders[EXPORT_TRIGGERS_MAX + 1][8];

	for (unsigned i = 0; i < EXPORT_TRIGGERS_MAX; i++) {
		snprintf(folders[i], sizeof(folders[i]), "f%u", i);
		assert_int_equal(export_trigger_add(&triggers, folders[i]), 0);
	}
	assert_int_equal(export_trigger_add(&triggers, "one-more"), -EINVAL);
	assert_non_null(strstr(message_last(), "more than 64 folders; give fewer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_folders_than_there_is_room_for),
	};
	int failed = test_refusals(&cmd_export, refused, sizeof(refused) / sizeof(refused[0]));

	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
