/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding applications by their runtime folders. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/atomics.h"
#include "ringtap/reader.h"
#include "reader/test_peer.h"
#include "views.h"

/* XDG_RUNTIME_DIR, with dpdk/NAME -> the peer's folder. */
struct home {
	char dir[64], dpdk[80], app[160];
};

static void make_home(struct home *h, const char *name, const char *target)
{
	strcpy(h->dir, "/tmp/ringtap-home.XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->dpdk, sizeof(h->dpdk), "%s/dpdk", h->dir);
	assert_int_equal(mkdir(h->dpdk, 0700), 0);
	snprintf(h->app, sizeof(h->app), "%s/%s", h->dpdk, name);
	assert_int_equal(symlink(target, h->app), 0);
	setenv("XDG_RUNTIME_DIR", h->dir, 1);
	/* Searches of other runs of this test. */
	setenv(RT_VIEWS_VARIABLE, "no", 1);
}

static void remove_home(struct home *h)
{
	unlink(h->app);
	rmdir(h->dpdk);
	rmdir(h->dir);
	unsetenv("XDG_RUNTIME_DIR");
}

/* Number of applications found with this name. Others may run on this machine. */
static unsigned found(const char *name, const char *dir)
{
	struct ringtap_apps *apps;
	unsigned n = 0;

	assert_int_equal(ringtap_apps_find(&apps), 0);
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		if (strcmp(ringtap_apps_name(apps, i), name))
			continue;
		assert_string_equal(ringtap_apps_dir(apps, i), dir);
		n++;
	}
	assert_null(ringtap_apps_name(apps, ringtap_apps_count(apps)));
	ringtap_apps_free(apps);
	return n;
}

static void test_application_with_a_probe_awake_is_found(void **state)
{
	struct test_peer p = {0};
	struct home h;

	test_peer_start(&p, true);
	make_home(&h, "discovered-awake", p.dir);
	assert_int_equal(found("discovered-awake", h.app), 1);
	remove_home(&h);
	test_peer_stop(&p);
}

static void test_application_with_telemetry_is_found(void **state)
{
	struct test_peer p = {.telemetry = "{}"};
	struct home h;

	test_peer_start(&p, false);
	make_home(&h, "discovered-asleep", p.dir);
	assert_int_equal(found("discovered-asleep", h.app), 1);
	remove_home(&h);
	test_peer_stop(&p);
}

static void test_folder_of_an_ended_application_is_skipped(void **state)
{
	struct test_peer p = {.telemetry = "{}"};
	struct home h;
	char config[128];

	test_peer_start(&p, false);
	make_home(&h, "discovered-dead", p.dir);
	snprintf(config, sizeof(config), "%s/config", p.dir);
	close(open(config, O_CREAT | O_RDWR, 0600));
	test_peer_die(&p); /* its sockets exist, without a listener */
	assert_int_equal(found("discovered-dead", h.app), 0);
	unlink(config);
	remove_home(&h);
	test_peer_bury(&p);
}

/* DPDK 23.11.0 never gives back the place of a client that leaves before the greeting. */
static void test_telemetry_is_met_once_and_its_greeting_received(void **state)
{
	struct test_peer p = {.telemetry = "{}", .telemetry_late = true};
	struct home h;
	uint32_t pid;

	test_peer_start(&p, false);
	make_home(&h, "discovered-slots", p.dir);
	for (int i = 0; i < 3; i++)
		assert_int_equal(found("discovered-slots", h.app), 1);
	assert_int_equal(rt_load(&p.requests), 1);
	assert_int_equal(ringtap_telemetry(p.dir, NULL, 0, NULL, &pid), 0);
	assert_int_equal(pid, getpid());
	remove_home(&h);
	test_peer_stop(&p);
	assert_int_equal(p.requests, 2);
	assert_int_equal(p.left_early, 0);
}

/* A process that locks the config file, as EAL does. */
static pid_t lock_config(const char *config)
{
	struct flock lock = {.l_type = F_WRLCK};
	int up[2], fd;
	pid_t pid;
	char c;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (pid == 0) {
		fd = open(config, O_CREAT | O_RDWR, 0600);
		if (fcntl(fd, F_SETLK, &lock) == 0 && write(up[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	close(up[0]);
	close(up[1]);
	return pid;
}

/* --no-telemetry, without a linked probe: only EAL's lock is visible. */
static void test_application_without_sockets_is_found_by_its_lock(void **state)
{
	struct test_peer p = {0};
	struct home h;
	char config[128];
	pid_t pid;

	test_peer_start(&p, false);
	make_home(&h, "discovered-locked", p.dir);
	snprintf(config, sizeof(config), "%s/config", p.dir);
	pid = lock_config(config);
	assert_int_equal(found("discovered-locked", h.app), 1);
	/* The file belongs to another user than the folder. */
	if (!geteuid()) {
		assert_int_equal(chown(config, 65534, 65534), 0);
		assert_int_equal(found("discovered-locked", h.app), 0);
		assert_int_equal(chown(config, 0, 0), 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(found("discovered-locked", h.app), 0);
	unlink(config);
	remove_home(&h);
	test_peer_stop(&p);
}

static void test_telemetry_beside_a_lock_is_not_connected_to(void **state)
{
	struct test_peer p = {.telemetry = "{}"};
	struct home h;
	char config[128];
	pid_t pid;

	test_peer_start(&p, false);
	make_home(&h, "discovered-untouched", p.dir);
	snprintf(config, sizeof(config), "%s/config", p.dir);
	pid = lock_config(config);
	assert_int_equal(found("discovered-untouched", h.app), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(config);
	remove_home(&h);
	test_peer_stop(&p);
	assert_int_equal(p.requests, 0);
}

/* In a container it may be a device. */
static void test_config_that_is_no_file_is_not_opened(void **state)
{
	struct test_peer p = {.telemetry = "{}"};
	int watch = inotify_init1(IN_NONBLOCK);
	struct inotify_event event;
	char config[128];
	struct home h;

	test_peer_start(&p, false);
	make_home(&h, "discovered-device", p.dir);
	snprintf(config, sizeof(config), "%s/config", p.dir);
	assert_int_equal(mkfifo(config, 0600), 0);
	assert_true(inotify_add_watch(watch, config, IN_OPEN) >= 0);
	assert_int_equal(found("discovered-device", h.app), 1);
	assert_int_equal(read(watch, &event, sizeof(event)), -1);
	/* The test sees an open(). */
	close(open(config, O_RDONLY | O_NONBLOCK));
	assert_int_equal(read(watch, &event, sizeof(event)), sizeof(event));
	close(watch);
	unlink(config);
	remove_home(&h);
	test_peer_stop(&p);
}

static void test_folder_with_two_names_is_listed_once(void **state)
{
	static const char app[] = "/tmp/dpdk/ringtap-test";
	struct test_peer p = {0};

	/* Not root's applications live in /tmp/dpdk where there is no XDG_RUNTIME_DIR. The
	 * machine's folder is not used: its removal would detach what other mount namespaces have
	 * mounted there. */
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", "/tmp", "tmpfs", 0, "mode=1777")) {
		print_message("skipped: may not mount a tmpfs here: %s\n", strerror(errno));
		skip();
	}
	test_peer_start(&p, true);
	assert_int_equal(mkdir("/tmp/dpdk", 0700), 0);
	assert_int_equal(symlink(p.dir, app), 0);
	setenv("XDG_RUNTIME_DIR", "/tmp", 1);
	assert_int_equal(found(strrchr(app, '/') + 1, app), 1);
	unsetenv("XDG_RUNTIME_DIR");
	test_peer_stop(&p);
	assert_int_equal(umount2("/tmp", MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_application_with_a_probe_awake_is_found),
		cmocka_unit_test(test_application_with_telemetry_is_found),
		cmocka_unit_test(test_folder_of_an_ended_application_is_skipped),
		cmocka_unit_test(test_telemetry_is_met_once_and_its_greeting_received),
		cmocka_unit_test(test_telemetry_beside_a_lock_is_not_connected_to),
		cmocka_unit_test(test_application_without_sockets_is_found_by_its_lock),
		cmocka_unit_test(test_config_that_is_no_file_is_not_opened),
		cmocka_unit_test(test_folder_with_two_names_is_listed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
