/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of recorders in the folder of an application. */
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "ask.h"

#define DOCUMENT "{\"application\": {\"name\": \"app\"}}"

static char home[64], folder[2][80];

static int make(void **state)
{
	char command[200];

	strcpy(home, "/tmp/ringtap-ask.XXXXXX");
	if (!mkdtemp(home))
		return -1;
	snprintf(folder[0], sizeof(folder[0]), "%s/a", home);
	snprintf(folder[1], sizeof(folder[1]), "%s/b", home);
	snprintf(command, sizeof(command), "mkdir -m 700 %s %s", folder[0], folder[1]);
	return system(command);
}

static int clean(void **state)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -r %s", home);
	return system(command);
}

static const char *document = DOCUMENT;

static void *answer_one(void *arg)
{
	struct pollfd asked = {.fd = *(int *)arg, .events = POLLIN};

	if (poll(&asked, 1, -1) == 1 && ask_is_waiting(asked.fd))
		ask_answer(asked.fd, document);
	return NULL;
}

/* Documents of the recorders in a folder. */
static size_t documents(const char *dir)
{
	json_t *list = json_array();
	size_t n;

	ask_recorders(list, dir, "app", 5000);
	n = json_array_size(list);
	json_decref(list);
	return n;
}

static void test_recorder_in_the_folder_is_asked(void **state)
{
	int fd = ask_listen(folder[0]);
	pthread_t thread;

	assert_true(fd >= 0);
	assert_int_equal(pthread_create(&thread, NULL, answer_one, &fd), 0);
	assert_int_equal(documents(folder[0]), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ask_close(fd, folder[0]);
	assert_int_equal(documents(folder[0]), 0);
}

/* Sixteen that are mute take as long as one, and the others answer. */
static void test_mute_recorders_are_waited_for_together(void **state)
{
	int fd = ask_listen(folder[0]), mute[3];
	json_t *list = json_array();
	pthread_t thread;

	for (int i = 0; i < 3; i++) {
		struct sockaddr_un a = {.sun_family = AF_UNIX};

		snprintf(a.sun_path, sizeof(a.sun_path), "%s/ringtap-flight-0%d", folder[0], i);
		mute[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(bind(mute[i], (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(listen(mute[i], 4), 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, answer_one, &fd), 0);
	/* One after the other, the first would have taken the time of all. */
	assert_false(ask_recorders(list, folder[0], "app", 300));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(json_array_size(list), 1);
	for (int i = 0; i < 3; i++)
		close(mute[i]);
	ask_close(fd, folder[0]);
	/* The next recorder removes the files of dead ones. */
	fd = ask_listen(folder[0]);
	ask_close(fd, folder[0]);
	json_decref(list);
}

/* In a container it may lead to a service of the host. */
static void test_link_is_not_followed(void **state)
{
	int fd = ask_listen(folder[0]);
	char path[160], link[160];

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "%s/ringtap-flight-%d", folder[0], (int)getpid());
	snprintf(link, sizeof(link), "%s/ringtap-flight-1", folder[1]);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(documents(folder[1]), 0);
	assert_false(ask_is_waiting(fd));
	ask_close(fd, folder[0]);
	unlink(link);
}

static unsigned endless; /* names that such a folder had to give; 0: folders are as they are */

/* In place of libc's. */
struct dirent *readdir(DIR *d)
{
	static struct dirent other = {.d_name = "file"};

	if (!endless)
		return ((struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir"))(d);
	endless++;
	return &other;
}

/* Its owner may be any user. */
static void test_folder_without_an_end_is_left(void **state)
{
	endless = 1;
	assert_int_equal(documents(folder[0]), 0);
	assert_in_range(endless, 1000, 100000);
	endless = 0;
}

static size_t documents_of(const char *text)
{
	int fd = ask_listen(folder[0]);
	pthread_t thread;
	size_t n;

	document = text;
	assert_true(fd >= 0);
	assert_int_equal(pthread_create(&thread, NULL, answer_one, &fd), 0);
	n = documents(folder[0]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ask_close(fd, folder[0]);
	document = DOCUMENT;
	return n;
}

/* The application's owner can answer anything. */
static void test_what_is_not_an_answer(void **state)
{
	static const char *const texts[] = {"", "[]", "{}", "5", "{\"application\": 5}",
		"{\"application\": {\"name\": \"other\"}}", "{\"application\": {\"name\": \"app\"}",
		DOCUMENT DOCUMENT};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(documents_of(texts[i]), 0);
}

static void test_long_answers(void **state)
{
	char *text = calloc(1, 200001);

	memset(text, 'x', 200000);
	assert_int_equal(documents_of(text), 0);
	memset(text, '{', 200000);
	assert_int_equal(documents_of(text), 0);
	free(text);
}

static size_t documents_with(unsigned conditions)
{
	char text[4096];
	int n = snprintf(
		text, sizeof(text), "{\"application\": {\"name\": \"app\"}, \"conditions\": [");

	for (unsigned i = 0; i < conditions; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s{}", i ? ", " : "");
	snprintf(text + n, sizeof(text) - (size_t)n, "]}");
	return documents_of(text);
}

/* An exporter compares them one by one. */
static void test_more_conditions_than_a_recorder_has(void **state)
{
	assert_int_equal(documents_with(ASK_CONDITIONS_MAX), 1);
	assert_int_equal(documents_with(ASK_CONDITIONS_MAX + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorder_in_the_folder_is_asked),
		cmocka_unit_test(test_mute_recorders_are_waited_for_together),
		cmocka_unit_test(test_link_is_not_followed),
		cmocka_unit_test(test_folder_without_an_end_is_left),
		cmocka_unit_test(test_what_is_not_an_answer),
		cmocka_unit_test(test_long_answers),
		cmocka_unit_test(test_more_conditions_than_a_recorder_has),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
