/* SPDX-License-Identifier: BSD-3-Clause */
/* Incidents of recorders that are made up, and their pages. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_actions.h"

/* Reads a folder, which may take until the test has set hangs back. */
static atomic_bool hangs;
static sem_t reads;

int scandir(const char *name, struct dirent ***list, int (*choose)(const struct dirent *),
	int (*order)(const struct dirent **, const struct dirent **))
{
	int (*next)(const char *, struct dirent ***, int (*)(const struct dirent *),
		int (*)(const struct dirent **, const struct dirent **));

	*(void **)&next = dlsym(RTLD_NEXT, "scandir");
	sem_post(&reads);
	while (atomic_load(&hangs))
		sched_yield();
	return next(name, list, choose, order);
}

/* Opens a file or folder; one of incidents takes until the test has set opens_hang back. */
static atomic_bool opens_hang;
static sem_t opens;

int open(const char *name, int flags, ...)
{
	int (*next)(const char *, int, ...);
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	*(void **)&next = dlsym(RTLD_NEXT, "open");
	if (atomic_load(&opens_hang) && strstr(name, INCIDENT)) {
		sem_post(&opens);
		while (atomic_load(&opens_hang))
			sched_yield();
	}
	return next(name, flags, mode);
}

static void write_page(const char *incident)
{
	char path[256];

	assert_int_equal(mkdir(incident, 0755), 0);
	snprintf(path, sizeof(path), "%s/index.html", incident);
	test_write(path, "the page", 8);
}

static void assert_page(const char *of, const char *name, int status)
{
	char what[4500];

	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=%s", of, name);
	assert_status(what, shown, status);
}

static void the_page_of_an_incident_is_in_a_sandbox(void **state)
{
	char what[4500], *text;
	struct reader c = watched();

	write_page(INCIDENT);
	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=" INCIDENT, folder);
	text = ask(what, shown);
	assert_non_null(strstr(text, "HTTP/1.1 200 OK"));
	assert_non_null(
		strstr(text, "Content-Security-Policy: sandbox allow-scripts allow-downloads; "));
	assert_non_null(strstr(text, "\r\n\r\nthe page"));
	free(text);
	assert_status(what, "", 403);
	unsubscribe(&c);
}

/* A client has ten seconds for a request, but not for the page. */
static void a_large_page_may_take_long(void **state)
{
	const size_t size = 16 << 20;
	char what[4500], *text = malloc(size);
	struct reader c = watched();
	size_t len = 0;
	ssize_t n;
	int fd;

	memset(text, 'x', size);
	write_page(INCIDENT);
	test_write(INCIDENT "/index.html", text, size);
	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=" INCIDENT, folder);
	snprintf(text, size, "%sConnection: close\r\n", shown);
	fd = connect_there(65536);
	send_request(fd, what, text);
	assert_true(recv(fd, text, 1, 0) == 1);
	for (unsigned i = 0; i < 12; i++)
		second();
	while ((n = recv(fd, text, size, 0)) > 0)
		len += (size_t)n;
	assert_true(len > size);
	close(fd);
	free(text);
	unsubscribe(&c);
}

static int begin_patient(void **state)
{
	int ret;

	silence_s = 10;
	ret = begin_allowed(state);
	web.serve.clients.vanished_ms = silence_s * 1000;
	return ret;
}

static int end_patient(void **state)
{
	silence_s = 0;
	return end_allowed(state);
}

/* They take some time on a busy machine. */
static void some_pages_are_sent_at_once(void **state)
{
	const size_t size = 16 << 20;
	char what[4500], *text = malloc(size);
	int fd[DOWNLOADS_MAX];
	struct reader c = watched();

	memset(text, 'x', size);
	write_page(INCIDENT);
	test_write(INCIDENT "/index.html", text, size);
	text[1] = '\0';
	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=" INCIDENT, folder);
	for (unsigned i = 0; i < DOWNLOADS_MAX; i++) {
		fd[i] = connect_there(4096);
		send_request(fd[i], what, shown);
		assert_true(recv(fd[i], text, 1, 0) == 1);
	}
	assert_status(what, shown, 503);
	close(fd[0]);
	while (!strstr(text, "HTTP/1.1 200")) {
		free(text);
		text = ask(what, shown);
	}
	for (unsigned i = 1; i < DOWNLOADS_MAX; i++)
		close(fd[i]);
	free(text);
	unsubscribe(&c);
}

/* Requests for the page of a folder that hangs; other clients are answered meanwhile. */
static void a_page_that_hangs_holds_up_no_other(void **state)
{
	char what[4500], answer[64];
	struct reader c = watched();
	int fd = connect_there(0);

	write_page(INCIDENT);
	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=" INCIDENT, folder);
	atomic_store(&opens_hang, true);
	send_request(fd, what, shown);
	sem_wait(&opens);
	assert_status("GET /", shown, 200);
	for (unsigned i = 0; i < 3; i++) {
		second();
		skip_event(&c, NULL);
	}
	assert_int_equal(recv(fd, answer, 12, MSG_WAITALL), 12);
	assert_memory_equal(answer, "HTTP/1.1 503", 12);
	/* The next one does not wait, nor has it a thread. */
	assert_status(what, shown, 503);
	atomic_store(&opens_hang, false);
	close(fd);
	do {
		fd = connect_there(0);
		send_request(fd, what, shown);
		assert_int_equal(recv(fd, answer, 12, MSG_WAITALL), 12);
		close(fd);
	} while (memcmp(answer, "HTTP/1.1 200", 12));
	unsubscribe(&c);
}

/* The server ends while requests wait. */
static void a_page_that_hangs_does_not_hold_up_the_end(void **state)
{
	char what[4500], answer[64];
	struct reader c = watched();
	int fd = connect_there(0);

	write_page(INCIDENT);
	snprintf(what, sizeof(what), "GET /incident?app=app&folder=%s&name=" INCIDENT, folder);
	atomic_store(&opens_hang, true);
	send_request(fd, what, shown);
	sem_wait(&opens);
	unsubscribe(&c);
	end(state);
	assert_true(recv(fd, answer, sizeof(answer), 0) >= 0);
	close(fd);
	atomic_store(&opens_hang, false);
	begin_server(true);
}

static void a_folder_that_hangs_holds_up_no_page(void **state)
{
	struct reader c = watched(), other;

	while (!sem_trywait(&reads)) /* the names, so far */
		;
	atomic_store(&hangs, true);
	recorder_answers_stop(web.recorders);
	assert_int_equal(recorder_answers_start(&web.recorders, &web.watch, incident_names), 0);
	sem_wait(&reads);
	for (unsigned i = 0; i < 3; i++) {
		second();
		skip_event(&c, NULL);
	}
	other = subscribe("?app=app", 0);
	skip_event(&other, "document");
	atomic_store(&hangs, false);
	unsubscribe(&other);
	unsubscribe(&c);
}

static void a_folder_that_hangs_does_not_hold_up_the_end(void **state)
{
	struct reader c = watched();

	while (!sem_trywait(&reads)) /* the names, so far */
		;
	atomic_store(&hangs, true);
	recorder_answers_stop(web.recorders);
	assert_int_equal(recorder_answers_start(&web.recorders, &web.watch, incident_names), 0);
	sem_wait(&reads);
	recorder_answers_stop(web.recorders);
	atomic_store(&hangs, false);
	assert_int_equal(recorder_answers_start(&web.recorders, &web.watch, incident_names), 0);
	unsubscribe(&c);
}

static void paths_of_incidents_are_checked(void **state)
{
	struct reader c = watched();
	char parent[4100];

	write_page(INCIDENT);
	assert_int_equal(symlink(INCIDENT, "20260102T030405.000002-gap"), 0);
	assert_int_equal(mkdir("20260102T030405.000003-gap", 0755), 0);
	assert_int_equal(
		symlink("../" INCIDENT "/index.html", "20260102T030405.000003-gap/index.html"), 0);
	assert_int_equal(mkdir("20260102T030405.000004-gap", 0755), 0);
	assert_int_equal(mkfifo("20260102T030405.000004-gap/index.html", 0644), 0);
	write_page("other");
	assert_page(folder, INCIDENT, 200);
	assert_page(folder, "20260102T030405.000002-gap", 404);
	assert_page(folder, "20260102T030405.000003-gap", 404);
	assert_page(folder, "20260102T030405.000004-gap", 404);
	assert_page(folder, "20260102T030405.000005-gap", 404);
	assert_page(folder, "other", 404);
	assert_page(folder, ".", 404);
	assert_page(folder, "", 404);
	assert_page(folder, INCIDENT "%2f..%2f" INCIDENT, 404);
	assert_page(folder, "..%2fx%2f" INCIDENT, 404);
	snprintf(parent, sizeof(parent), "%s/.", folder);
	assert_page(parent, INCIDENT, 404);
	assert_status("GET /incident", shown, 404);
	unsubscribe(&c);
	unlink("20260102T030405.000002-gap");
}

static void incidents_are_listed(void **state)
{
	struct reader c;
	const json_t *panel;
	bool found = false;
	size_t i;
	json_t *j;

	write_page(INCIDENT);
	write_page("other");
	c = watched();
	do {
		j = next_event(&c, NULL);
		json_array_foreach(json_object_get(j, "panels"), i, panel)
		{
			const json_t *rows = json_object_get(panel, "rows");

			if (strcmp(json_string_value(json_object_get(panel, "title")), "Incidents"))
				continue;
			assert_int_equal(json_array_size(rows), 1);
			assert_string_equal(
				json_string_value(json_array_get(json_array_get(rows, 0), 1)),
				"gap");
			found = true;
		}
		json_decref(j);
		if (!found)
			second();
	} while (!found);
	unsubscribe(&c);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_allowed, end_allowed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_page_of_an_incident_is_in_a_sandbox),
		CASE(a_large_page_may_take_long),
		cmocka_unit_test_setup_teardown(
			some_pages_are_sent_at_once, begin_patient, end_patient),
		CASE(a_page_that_hangs_holds_up_no_other),
		CASE(a_page_that_hangs_does_not_hold_up_the_end),
		CASE(a_folder_that_hangs_holds_up_no_page),
		CASE(a_folder_that_hangs_does_not_hold_up_the_end),
		CASE(paths_of_incidents_are_checked),
		CASE(incidents_are_listed),
	};

	sem_init(&reads, 0, 0);
	sem_init(&opens, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
