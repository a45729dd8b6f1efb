/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands for incidents that are on disk; the folder may belong to another user. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_command.h"
#include "base/test_util.h"
#include "base/util.h"
#include "cli/commands.h"
#include "folder.h"

#define FOLDER  "incidents"
#define NAME(n) "20260102T030405.00000" #n "-exit"

/* Files of a recorder, as far as the commands read them. */
#define WHOLE                                                                                               \
	"{\"name\": \"x\", \"applications\": [{\"name\": \"ovs\"}], \"error\": null, \"not_written\": [], " \
	"\"packets\": 12345, \"bytes\": 6789012, \"lost\": 3, \"window_ns\": "                              \
	"2500000000, \"missing_ns\": 250000000, \"trigger\": {\"condition\": "                              \
	"\"gap > 50us\", \"where\": \"lcore 1\", \"value\": \"61.2 us\", \"comment\": null}}"

static char root[32];

static int enter(void **state)
{
	strcpy(root, "/tmp/ringtap-folder-XXXXXX");
	if (!mkdtemp(root) || chdir(root))
		return -1;
	return mkdir(FOLDER, 0700);
}

static int leave(void **state)
{
	char command[64];

	if (chdir("/"))
		return -1;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void put(const char *path, const char *text)
{
	test_write(path, text, strlen(text));
}

static char *part_of(const char *name, const char *part)
{
	static char path[256];

	snprintf(path, sizeof(path), FOLDER "/%s/%s", name, part);
	return path;
}

static void make(const char *name, const char *document)
{
	char path[128];

	snprintf(path, sizeof(path), FOLDER "/%s", name);
	assert_int_equal(mkdir(path, 0700), 0);
	if (document)
		put(part_of(name, FLIGHT_INCIDENT), document);
	put(part_of(name, FLIGHT_DOCTOR), "ovs, watched for 5.0 s:\n  ok: the application is "
					  "healthy\n");
}

static void assert_prints(const char *args, int status, const char *text)
{
	struct test_output o = test_command(&cmd_flight, args);

	assert_int_equal(o.status, status);
	assert_string_equal(o.out, text);
	assert_string_equal(o.err, "");
	test_output_free(&o);
}

static void assert_fails(const char *args, const char *text)
{
	struct test_output o = test_command(&cmd_flight, args);

	assert_int_equal(o.status, STATUS_FAILED);
	assert_string_equal(o.out, "");
	assert_non_null(strstr(o.err, text));
	test_output_free(&o);
}

static bool is_there(const char *path)
{
	return !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* ---- list and show */

static void incidents_are_listed_oldest_first(void **state)
{
	make(NAME(2), WHOLE);
	make(NAME(1), WHOLE);
	make("other", WHOLE);
	make("20260102T030405.000003-\nforged", WHOLE);
	make("2026010aT030405.000003-exit", WHOLE);
	assert_prints("list", STATUS_OK,
		NAME(1) "                             12,345 packets   6.47 MiB  gap > 50us: 61.2 us; not kept: the first 250 ms\n" NAME(
			2) "                             12,345 packets   6.47 MiB  gap > 50us: 61.2 us; not kept: the first 250 ms\n");
	assert_prints("list|--folder|.", STATUS_OK, "");
}

static void what_is_not_whole_is_listed_so(void **state)
{
	make(NAME(1), NULL);
	make(NAME(2),
		"{\"error\": \"No space left on device\", \"trigger\": {\"comment\": \"a\\nb\"}}");
	make(NAME(3), "{\"error\": null, \"not_written\": [\"metrics.json\"], \"packets\": 1}");
	make(NAME(4), "{\"name\": ");
	make(NAME(5), "{}");
	assert_prints("list", STATUS_OK,
		NAME(1) "                       incomplete\n" NAME(2) "                                  0 packets        0 B; a b (not all of it)\n" NAME(3) "                                  1 packets        0 B (not all of it)\n" NAME(
			4) "                       incomplete\n" NAME(5) "                                  0 packets        0 B (not all of it)\n");
}

static void json_has_those_that_are_complete(void **state)
{
	struct test_output o;

	make(NAME(1), "{\"name\": \"a\"}");
	make(NAME(2), NULL);
	o = test_command(&cmd_flight, "list|--json");
	assert_non_null(
		strstr(o.out, "\"incidents\": [\n    {\n      \"name\": \"a\"\n    }\n  ]\n}\n"));
	assert_non_null(strstr(o.out, "\"command\": \"flight list\""));
	test_output_free(&o);
	assert_prints("show|--json|" NAME(1), STATUS_OK, "{\n  \"name\": \"a\"\n}\n");
}

static void an_incident_is_shown(void **state)
{
	make(NAME(1), WHOLE);
	assert_prints("show|" NAME(1), STATUS_OK,
		"application: ovs\n"
		"trigger: gap > 50us, at lcore 1, value 61.2 us\n"
		"window: 2.5 s, 12,345 packets, 3 lost by the capture\n"
		"not kept: the first 250 ms; index.html has the reason\n"
		"ovs, watched for 5.0 s:\n  ok: the application is healthy\n");
}

static void a_cut_incident_is_shown(void **state)
{
	make(NAME(1),
		"{\"applications\": [{\"name\": \"a\"}], \"error\": \"No space left on device\", "
		"\"not_written\": [\"metrics.json\", \"index.html\"], \"window_ns\": "
		"1000000000, \"packets\": 1, \"lost\": 0, \"missing_ns\": "
		"500000000, \"trigger\": {\"condition\": \"command\", \"comment\": \"link "
		"flapped\"}}");
	unlink(part_of(NAME(1), FLIGHT_DOCTOR));
	assert_prints("show|" NAME(1), STATUS_OK,
		"application: a\ntrigger: command\ncomment: link flapped\n"
		"window: 1 s, 1 packets, 0 lost by the capture\n"
		"not written: the first 500 ms\n"
		"not complete: No space left on device\n"
		"not written: metrics.json, index.html\n");
}

static void the_newest_is_shown_or_one_by_its_path(void **state)
{
	assert_fails("show", "show: no complete incident in incidents;");
	make(NAME(1), "{\"name\": \"a\"}");
	make(NAME(2), "{\"name\": \"b\"}");
	make(NAME(3), NULL);
	assert_prints("show|--json", STATUS_OK, "{\n  \"name\": \"b\"\n}\n");
	assert_prints("show|--json|incidents/" NAME(1), STATUS_OK, "{\n  \"name\": \"a\"\n}\n");
	assert_prints(
		"show|--json|./incidents/" NAME(1) "//", STATUS_OK, "{\n  \"name\": \"a\"\n}\n");
	assert_fails("show|/" NAME(1), "no complete incident of that name in /");
}

static void incidents_that_are_not_there(void **state)
{
	make(NAME(1), NULL);
	assert_fails("show|" NAME(1), "no complete incident of that name in incidents; 'ringtap "
				      "flight list' shows what there is");
	assert_fails("show|" NAME(2), "no complete incident");
	assert_fails("show|.", "no complete incident");
	assert_fails("show|../incidents/" NAME(1), "no complete incident");
}

/* ---- files of another user */

/* Control characters are replaced by controls_guard_stdout(); a line end would begin a forged line.
 */
static void texts_of_the_files_stay_in_their_lines(void **state)
{
	static const char document[] =
		"{\"applications\": [{\"name\": \"a\\nforged\"}], \"error\": \"e\\nforged\", \"not_written\": "
		"[\"n\\nforged\"], \"packets\": 1, \"trigger\": {\"condition\": \"c\\nforged\", "
		"\"where\": \"w\\nforged\", \"value\": \"v\\nforged\", \"comment\": "
		"\"t\\nforged\"}}";
	struct test_output o;

	make(NAME(1), document);
	make("20260102T030405.000002-exit\x1b[2J", document);
	assert_prints("list", STATUS_OK,
		NAME(1) "                                  1 packets        0 B  c forged: v forged; "
			"t forged (not all of it)\n");
	o = test_command(&cmd_flight, "show|" NAME(1));
	assert_null(strstr(o.out, "\nforged"));
	assert_non_null(strstr(o.out, "comment: t forged"));
	test_output_free(&o);
}

static void put_in_place(const char *path, const char *what)
{
	unlink(path);
	if (!strcmp(what, "fifo")) {
		assert_int_equal(mkfifo(path, 0600), 0);
	} else if (!strcmp(what, "large")) {
		put(path, "");
		assert_int_equal(truncate(path, 1ll << 34), 0);
	} else if (!strcmp(what, "device")) {
		assert_int_equal(symlink("/dev/tty", path), 0);
	} else {
		assert_int_equal(symlink("/etc/passwd", path), 0);
	}
}

/* A FIFO or a device would never end, and a link leads to what its owner may not read. */
static void other_files_in_place_of_those_of_an_incident(void **state)
{
	const char *what = *state;
	struct test_output o;

	make(NAME(1), WHOLE);
	make(NAME(2), WHOLE);
	put_in_place(part_of(NAME(2), FLIGHT_INCIDENT), what);
	put_in_place(part_of(NAME(1), FLIGHT_DOCTOR), what);
	assert_prints("list", STATUS_OK,
		NAME(1) "                             12,345 packets   6.47 MiB  gap > 50us: 61.2 us; not kept: the first 250 ms\n" NAME(
			2) "                       incomplete\n");
	o = test_command(&cmd_flight, "show|" NAME(1));
	assert_int_equal(o.status, STATUS_OK);
	assert_string_equal(strstr(o.out, "not kept"),
		"not kept: the first 250 ms; index.html has the reason\n");
	test_output_free(&o);
	assert_fails("show|" NAME(2), "no complete incident");
	put_in_place(part_of(NAME(2), FLIGHT_PACKETS), "fifo");
	assert_fails("extract|" NAME(2) "|-w|out", NAME(2));
	assert_false(is_there("out"));
}

/* Its holder could stop every open() for 45 s. */
static void a_file_with_a_lease_is_not_waited_for(void **state)
{
	int fd;

	make(NAME(1), WHOLE);
	fd = open(part_of(NAME(1), FLIGHT_INCIDENT), O_RDONLY);
	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	assert_prints("list", STATUS_OK, NAME(1) "                       incomplete\n");
	close(fd);
}

/* ---- prune */

static void sized(const char *name, size_t len)
{
	char *data = calloc(1, len);

	make(name, WHOLE);
	put(part_of(name, FLIGHT_DOCTOR), "");
	put(part_of(name, FLIGHT_INCIDENT), "");
	test_write(part_of(name, FLIGHT_PACKETS), data, len);
	free(data);
}

static void make_three(void)
{
	sized(NAME(1), 1000);
	sized(NAME(2), 2000);
	sized(NAME(3), 3000);
}

static void assert_left(bool first, bool second, bool third)
{
	assert_int_equal(is_there(FOLDER "/" NAME(1)), first);
	assert_int_equal(is_there(FOLDER "/" NAME(2)), second);
	assert_int_equal(is_there(FOLDER "/" NAME(3)), third);
}

static void the_oldest_beyond_a_number_are_removed(void **state)
{
	make_three();
	assert_prints("prune|--max-incidents|3", STATUS_OK, "Incidents removed: 0\n");
	assert_left(true, true, true);
	assert_prints("prune|--max-incidents|2", STATUS_OK, "Incidents removed: 1\n");
	assert_left(false, true, true);
	assert_prints("prune|--max-incidents|1", STATUS_OK, "Incidents removed: 1\n");
	assert_left(false, false, true);
}

static void the_oldest_beyond_a_size_are_removed(void **state)
{
	make_three();
	assert_int_equal(folder_prune(FOLDER, 0, 6000), 0);
	assert_int_equal(folder_prune(FOLDER, 0, 5999), 1);
	assert_left(false, true, true);
	assert_int_equal(folder_prune(FOLDER, 0, 5000), 0);
	assert_int_equal(folder_prune(FOLDER, 0, 4999), 1);
	assert_left(false, false, true);
}

static void the_newest_stays_whatever_its_size(void **state)
{
	make_three();
	assert_prints("prune|--max-disk|1B", STATUS_OK, "Incidents removed: 2\n");
	assert_left(false, false, true);
}

static void no_limit_removes_nothing(void **state)
{
	make_three();
	assert_int_equal(folder_prune(FOLDER, 0, 0), 0);
	assert_int_equal(folder_prune("nowhere", 1, 1), 0);
	assert_left(true, true, true);
}

static void what_is_being_written_stays(void **state)
{
	int fd;

	make_three();
	fd = open(FOLDER "/" NAME(1), O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(folder_prune(FOLDER, 1, 0), 1);
	assert_left(true, false, true);
	close(fd);
	assert_int_equal(folder_prune(FOLDER, 1, 0), 1);
	assert_left(false, false, true);
}

static void files_of_others_stay(void **state)
{
	make_three();
	put(part_of(NAME(1), "notes.txt"), "mine");
	assert_int_equal(folder_prune(FOLDER, 1, 0), 2);
	assert_left(true, false, true);
	assert_true(is_there(part_of(NAME(1), "notes.txt")));
	assert_false(is_there(part_of(NAME(1), FLIGHT_PACKETS)));
}

static void pruning_stays_in_the_folder(void **state)
{
	make_three();
	assert_int_equal(rename(FOLDER "/" NAME(1), "elsewhere"), 0);
	assert_int_equal(symlink("../elsewhere", FOLDER "/" NAME(1)), 0);
	assert_int_equal(folder_prune(FOLDER, 1, 0), 1);
	assert_true(is_there("elsewhere/" FLIGHT_PACKETS));
	folder_remove(FOLDER, NAME(1));
	assert_true(is_there("elsewhere/" FLIGHT_PACKETS));
	folder_remove(FOLDER, NAME(3));
	assert_left(true, false, false);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, enter, leave)
#define OTHER(what)                                                                          \
	{                                                                                    \
		"other_files_in_place: " what, other_files_in_place_of_those_of_an_incident, \
			enter, leave, (char *)what                                           \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(incidents_are_listed_oldest_first),
		CASE(what_is_not_whole_is_listed_so),
		CASE(json_has_those_that_are_complete),
		CASE(an_incident_is_shown),
		CASE(a_cut_incident_is_shown),
		CASE(the_newest_is_shown_or_one_by_its_path),
		CASE(incidents_that_are_not_there),
		CASE(texts_of_the_files_stay_in_their_lines),
		OTHER("fifo"),
		OTHER("large"),
		OTHER("device"),
		OTHER("link"),
		CASE(a_file_with_a_lease_is_not_waited_for),
		CASE(the_oldest_beyond_a_number_are_removed),
		CASE(the_oldest_beyond_a_size_are_removed),
		CASE(the_newest_stays_whatever_its_size),
		CASE(no_limit_removes_nothing),
		CASE(what_is_being_written_stays),
		CASE(files_of_others_stay),
		CASE(pruning_stays_in_the_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
