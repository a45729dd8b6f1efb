/* SPDX-License-Identifier: BSD-3-Clause */
/* Files with keys. */
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "key.h"

#define TEXT "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F\n"

static void one_that_is_missing_is_made(void **state)
{
	const uint8_t in[4] = {10, 1, 2, 3};
	uint8_t first[4], again[4];
	struct pseudonyms *p;
	struct stat st;

	test_folder_enter();
	p = key_open("test", "key", NULL);
	assert_non_null(p);
	pseudonym_ipv4(p, in, first);
	pseudonyms_free(p);
	assert_int_equal(stat("key", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 65);
	p = key_open("test", "key", NULL);
	assert_non_null(p);
	pseudonym_ipv4(p, in, again);
	pseudonyms_free(p);
	assert_memory_equal(first, again, 4);
	test_folder_leave();
}

static void a_key_as_text(void **state)
{
	uint8_t key[PSEUDONYM_KEY], in[4] = {10, 1, 2, 3}, a[4], b[4];
	struct pseudonyms *p, *q;

	for (unsigned i = 0; i < PSEUDONYM_KEY; i++)
		key[i] = (uint8_t)i;
	test_folder_enter();
	for (size_t len = 64; len <= 65; len++) {
		test_write("key", TEXT, len);
		chmod("key", 0400);
		p = key_open("test", "key", NULL);
		q = pseudonyms_new(key);
		assert_non_null(p);
		pseudonym_ipv4(p, in, a);
		pseudonym_ipv4(q, in, b);
		assert_memory_equal(a, b, 4);
		pseudonyms_free(p);
		pseudonyms_free(q);
		unlink("key");
	}
	test_folder_leave();
}

static void refused(void **state)
{
	static const struct {
		const char *text, *message;
		mode_t mode;
	} cases[] = {
		{TEXT, "other users may read it", 0640},
		{TEXT, "other users may read it", 0604},
		{"", "it has no key", 0600},
		{TEXT "0", "it has no key", 0600},
		{"0x" TEXT, "it has no key", 0600},
	};

	test_folder_enter();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test_write("key", cases[i].text, strlen(cases[i].text));
		chmod("key", cases[i].mode);
		assert_null(key_open("test", "key", NULL));
		assert_non_null(strstr(message_last(), cases[i].message));
		unlink("key");
	}
	/* Also one that is made for it. */
	assert_null(key_open("test", "key", "./key"));
	assert_non_null(strstr(message_last(), "the result has the same name"));
	unlink("key");
	mkdir("folder", 0700);
	assert_null(key_open("test", "folder", NULL));
	rmdir("folder");
	assert_null(key_open("test", "folder/key", NULL));
	test_folder_leave();
}

/* Each has the same key, which is whole at any time. */
static void made_by_several_at_once(void **state)
{
	pid_t pids[8];
	int status;

	test_folder_enter();
	for (unsigned round = 0; round < 20; round++) {
		fflush(NULL);
		for (unsigned i = 0; i < 8; i++) {
			pids[i] = fork();
			if (!pids[i])
				_exit(!key_open("test", "key", NULL));
		}
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_int_equal(status, 0);
		}
		assert_int_equal(unlink("key"), 0);
	}
	test_folder_leave();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_by_several_at_once),
		cmocka_unit_test(one_that_is_missing_is_made),
		cmocka_unit_test(a_key_as_text),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
