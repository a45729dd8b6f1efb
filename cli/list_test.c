/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of `ringtap list` for applications that the tests make. */
#include <fcntl.h>
#include <jansson.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/util.h"
#include "commands.h"
#include "target/test_apps.h"

static const struct ringtap_port_info ports[] = {{.name = "dpdk0",
							 .device = "0000:03:00.0",
							 .driver = "net_ixgbe",
							 .mac = {2, 0, 0, 0, 0, 0xff},
							 .link_mbps = 10000,
							 .mtu = 1500,
							 .linktype = 1,
							 .link_up = true,
							 .rx_queues = 4,
							 .tx_queues = 16},
	{.name = "net_ring_a",
		.device = "net_ring_a",
		.driver = "net_ring",
		.port_id = 31,
		.mtu = 65535,
		.linktype = 1,
		.rx_queues = 1,
		.tx_queues = 1}};

static const struct ringtap_session_info sessions[] = {{.id = 7,
	.reader = "ringtap",
	.reader_pid = 99,
	.rings = 3,
	.taps = 4,
	.buffer_size = 16777216,
	.start_ns = 12}};

#define INFO(p, host)                                                                       \
	{                                                                                   \
		.size = sizeof(struct ringtap_app_info), .pid = p, .host_pid = host,        \
		.program = "dpdk-testpmd", .dpdk = "DPDK 22.11.7", .probe = RINGTAP_VERSION \
	}

static int set_up(void **state)
{
	memset(&test_apps, 0, sizeof(test_apps));
	test_apps.app[0] = (struct test_app){.name = "pmd",
		.dir = "/run/dpdk/pmd",
		.pid = 4711,
		.info = INFO(4711, 4711),
		.ports = ports,
		.port_count = 2,
		.sessions = sessions,
		.session_count = 1};
	test_apps.app[1] = (struct test_app){.name = "bare",
		.dir = "/run/dpdk/bare",
		.pid = 12,
		.error = -EPROTONOSUPPORT,
		.why = "it runs without the probe"};
	test_apps.count = 2;
	return 0;
}

static const char *printed;

static int list(const char *line)
{
	char copy[256];
	char *argv[80] = {"list"};
	int argc = 1, status;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	test_stdout_begin();
	status = cmd_list.run(&cmd_list, argc, argv);
	printed = test_stdout_end();
	return status;
}

static void applications_ports_and_sessions(void **state)
{
	assert_int_equal(list(""), STATUS_OK);
	assert_string_equal(printed,
		"pmd  (dpdk-testpmd, pid 4711, DPDK 22.11.7, probe " RINGTAP_VERSION ")\n"
		"port name                 driver    mac               bit/s   mtu rx/txq link\n"
		"   0 dpdk0 (0000:03:00.0) net_ixgbe 02:00:00:00:00:ff  10 G  1500   4/16 up\n"
		"  31 net_ring_a           net_ring  00:00:00:00:00:00     - 65535    1/1 down\n"
		"  session 7: ringtap, pid 99, 3 rings, 16 MiB, 4 taps\n"
		"bare  (/run/dpdk/bare)\n"
		"  without the probe; 'ringtap attach bare' loads it\n");
}

static void link_types_have_a_column(void **state)
{
	struct ringtap_port_info two[2] = {ports[0], ports[1]};

	two[1].linktype = RINGTAP_LINKTYPE_RAW;
	test_apps.app[0].ports = two;
	assert_int_equal(list(""), STATUS_OK);
	assert_non_null(strstr(printed, "rx/txq link type\n"));
	assert_non_null(strstr(printed, "4/16 up   EN10MB\n"));
	assert_non_null(strstr(printed, "1/1 down RAW\n"));
	two[1].linktype = 65000;
	assert_int_equal(list(""), STATUS_OK);
	assert_non_null(strstr(printed, "1/1 down unknown\n"));
}

static void a_probe_of_another_version(void **state)
{
	snprintf(test_apps.app[0].info.probe, sizeof(test_apps.app[0].info.probe), "0.0.9");
	assert_int_equal(list(""), STATUS_OK);
	assert_non_null(strstr(printed, ", probe 0.0.9, which is not"));
	strcpy(test_apps.app[0].info.probe, RINGTAP_VERSION "0");
	list("");
	assert_non_null(strstr(printed, RINGTAP_VERSION "0, which is not"));
	/* Another commit of it. */
	strcpy(test_apps.app[0].info.probe, RINGTAP_VERSION "+494bff376943");
	list("");
	assert_non_null(strstr(printed, ", probe " RINGTAP_VERSION "+494bff376943)"));
	strcpy(test_apps.app[0].info.probe, RINGTAP_VERSION);
	assert_int_equal(list(""), STATUS_OK);
	assert_null(strstr(printed, "which is not"));
}

static void processes_without_telemetry_and_probe(void **state)
{
	test_apps.count = 1;
	test_apps.process[0].pid = 4711; /* it is listed as an application */
	test_apps.process[0].program = "dpdk-testpmd";
	test_apps.process[1].pid = 5000815; /* no process of this machine has such a number */
	test_apps.process[1].program = "vpp\033[2J";
	test_apps.process[2].pid = 5000816;
	test_apps.process[2].program = "vpp";
	test_apps.process_count = 3;
	assert_int_equal(list("vpp"), STATUS_OK);
	assert_string_equal(printed,
		"vpp  (pid 5000816)\n  no probe, no telemetry; 'ringtap attach 5000816' loads the probe\n");
	assert_int_equal(list("5000815"), STATUS_OK);
	assert_string_equal(printed,
		"vpp?[2J  (pid 5000815)\n  no probe, no telemetry; 'ringtap attach 5000815' loads the probe\n");
	assert_int_equal(list("--json 5000816"), STATUS_OK);
	assert_non_null(strstr(printed, "\"program\": \"vpp\""));
	assert_null(strstr(printed, "5000815"));
	assert_int_equal(list("vpp 817"), STATUS_FAILED);
}

static void applications_that_cannot_be_attached_to(void **state)
{
	test_apps.app[1].error = -EHOSTDOWN;
	test_apps.app[1].why = "it is stopped by a signal";
	test_apps.app[1].secondary = true;
	assert_int_equal(list("bare"), STATUS_OK);
	assert_string_equal(printed, "bare  (/run/dpdk/bare), secondary process\n"
				     "  cannot attach: it is stopped by a signal\n");
}

static void processes_of_containers_have_two_ids(void **state)
{
	test_apps.count = 1;
	test_apps.app[0].info = (struct ringtap_app_info)INFO(5, 4711);
	test_apps.app[0].session_count = 0;
	assert_int_equal(list(""), STATUS_OK);
	assert_non_null(strstr(printed, "pid 4711 (5 in its container), "));
	test_apps.app[0].info.host_pid = 0;
	assert_int_equal(list(""), STATUS_OK);
	assert_non_null(strstr(printed, "pid 5, "));
}

static void long_names_fit_a_terminal(void **state)
{
	static const struct ringtap_port_info longest[] = {
		{.name = "a-name-of-sixty-three-characters-that-no-terminal-has-room-for",
			.driver = "net_a_driver_with_a_long_name",
			.port_id = 1023,
			.mtu = 65535,
			.linktype = 1,
			.link_mbps = 400000,
			.link_up = true,
			.rx_queues = 128,
			.tx_queues = 128},
		{.name = "short", .device = "short", .driver = "net_a_driver_with_a_long_name"}};

	test_apps.count = 1;
	test_apps.app[0].ports = longest;
	for (test_apps.app[0].port_count = 1; test_apps.app[0].port_count <= 2;
		test_apps.app[0].port_count++) {
		assert_int_equal(list(""), STATUS_OK);
		for (const char *line = printed; *line; line = strchr(line, '\n') + 1) {
			char copy[256];

			snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(line, "\n"), line);
			assert_in_range(text_columns(copy), 1, TEXT_WIDTH);
		}
	}
	/* The driver has what a short name leaves. */
	test_apps.app[0].ports = longest + 1;
	test_apps.app[0].port_count = 1;
	assert_int_equal(list(""), STATUS_OK);
	assert_non_null(strstr(printed, "short net_a_driver"));
}

static void applications_are_chosen_by_name_and_number(void **state)
{
	static const struct {
		const char *line, *names;
		int status;
	} cases[] = {{"pmd", "pmd\npmd:dpdk0\npmd:net_ring_a\n", STATUS_OK},
		{"4711", "pmd\npmd:dpdk0\npmd:net_ring_a\n", STATUS_OK}, {"bare", "", STATUS_OK},
		{"12", "", STATUS_OK}, {"pm", "", STATUS_FAILED}, {"0", "", STATUS_FAILED},
		{"pmd none", "pmd\npmd:dpdk0\npmd:net_ring_a\n", STATUS_FAILED},
		{"", "pmd\npmd:dpdk0\npmd:net_ring_a\n", STATUS_OK}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[64];

		snprintf(line, sizeof(line), "--names %s", cases[i].line);
		assert_int_equal(list(line), cases[i].status);
		assert_string_equal(printed, cases[i].names);
	}
	assert_int_equal(list("none"), STATUS_FAILED);
	assert_string_equal(message_last(),
		"list: no application is called 'none'; 'ringtap list' shows what there is");
}

/* Applications that are not named get no connection. */
static void primary_means_its_secondaries(void **state)
{
	test_apps.app[1].secondary = true;
	test_apps.app[1].name = "pmd@12";
	assert_int_equal(list("pmd"), STATUS_OK);
	assert_int_equal(test_apps.opened, 2);
	assert_non_null(strstr(printed, "pmd@12  (/run/dpdk/bare), secondary process\n"));
	test_apps.opened = 0;
	assert_int_equal(list("pmd@12"), STATUS_OK);
	assert_int_equal(test_apps.opened, 1);
	assert_null(strstr(printed, "dpdk-testpmd"));
}

static void namesakes_are_told_apart(void **state)
{
	test_apps.app[0].name = "pmd~4711";
	test_apps.app[1].name = "pmd~12";
	assert_int_equal(list("pmd"), STATUS_FAILED);
	assert_string_equal(message_last(),
		"list: 'pmd' may be several applications (pmd~4711, pmd~12); "
		"name one by its process id");
}

static void nothing_runs(void **state)
{
	test_apps.count = 0;
	assert_int_equal(list(""), STATUS_OK);
	assert_string_equal(printed, "");
	assert_string_equal(message_last(),
		"list: no running DPDK application found; run ringtap as its user or as root");
	test_apps.find_error = -ENOMEM;
	assert_int_equal(list(""), STATUS_FAILED);
	assert_non_null(strstr(message_last(), "looking for applications: Cannot allocate"));
}

/* This process is an application that contains the vhost library, whose thread it has. */
static void devices_of_a_static_vhost_library_are_hidden(void **state)
{
	static const char why[] = "vhost ports are not visible";
	struct ringtap_port_info two[2] = {ports[0], ports[1]};
	void *map;
	int fd;

	test_apps.app[0].info.host_pid = (uint32_t)getpid();
	test_apps.app[0].ports = two;
	assert_int_equal(list("pmd"), STATUS_OK);
	assert_null(strstr(printed, why));
	assert_int_equal(list("--json pmd"), STATUS_OK);
	assert_non_null(strstr(printed, "\"hidden\": null"));
	assert_int_equal(prctl(PR_SET_NAME, "dpdk-vhost-evt"), 0);
	assert_int_equal(list("pmd"), STATUS_OK);
	assert_non_null(strstr(printed, why));
	assert_int_equal(list("--json pmd"), STATUS_OK);
	assert_non_null(strstr(printed, "\"hidden\": \"its vhost ports are not visible, as "));
	/* net_vhost starts the thread as well; and calls by a plugin are diverted. */
	for (unsigned i = 0; i < 2; i++) {
		strcpy(two[1].driver, i ? "net_vhost" : "vhost-user");
		assert_int_equal(list("pmd"), STATUS_OK);
		assert_null(strstr(printed, why));
	}
	strcpy(two[1].driver, ports[1].driver);
	test_folder_enter();
	test_write("librte_vhost.so.99", "library", 7);
	fd = open("librte_vhost.so.99", O_RDONLY);
	map = mmap(NULL, 7, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	close(fd);
	assert_int_equal(list("pmd"), STATUS_OK);
	assert_null(strstr(printed, why));
	munmap(map, 7);
	test_folder_leave();
	assert_int_equal(prctl(PR_SET_NAME, "vhost-events"), 0); /* before 23.11 */
	assert_int_equal(list("pmd"), STATUS_OK);
	assert_non_null(strstr(printed, why));
	test_apps.app[0].info.host_pid = 0; /* not visible from here */
	assert_int_equal(list("pmd"), STATUS_OK);
	assert_null(strstr(printed, why));
	assert_int_equal(prctl(PR_SET_NAME, "list_test"), 0);
}

static void as_json(void **state)
{
	json_t *doc, *app, *port, *session;

	test_apps.notes = 1;
	test_apps.app[1].secondary = true;
	assert_int_equal(list("--json"), STATUS_OK);
	doc = json_loads(printed, 0, NULL);
	assert_string_equal(
		message_last(), "list: skipped /run/dpdk/x belongs to user 7, not to user 0");
	assert_string_equal(json_string_value(json_array_get(json_object_get(doc, "skipped"), 0)),
		"/run/dpdk/x belongs to user 7, not to user 0");
	app = json_array_get(json_object_get(doc, "applications"), 0);
	assert_string_equal(json_string_value(json_object_get(app, "name")), "pmd");
	assert_string_equal(json_string_value(json_object_get(app, "dir")), "/run/dpdk/pmd");
	assert_true(json_is_null(json_object_get(app, "error")));
	assert_true(json_is_null(json_object_get(app, "primary")));
	assert_true(json_is_false(json_object_get(app, "stopped")));
	assert_int_equal(json_integer_value(json_object_get(app, "pid")), 4711);
	assert_int_equal(json_integer_value(json_object_get(app, "host_pid")), 4711);
	port = json_array_get(json_object_get(app, "ports"), 0);
	assert_string_equal(json_string_value(json_object_get(port, "name")), "dpdk0");
	assert_string_equal(json_string_value(json_object_get(port, "device")), "0000:03:00.0");
	assert_string_equal(json_string_value(json_object_get(port, "mac")), "02:00:00:00:00:ff");
	assert_int_equal(json_integer_value(json_object_get(port, "link_mbps")), 10000);
	assert_int_equal(json_integer_value(json_object_get(port, "tx_queues")), 16);
	assert_true(json_is_true(json_object_get(port, "link_up")));
	session = json_array_get(json_object_get(app, "sessions"), 0);
	assert_int_equal(json_integer_value(json_object_get(session, "buffer_bytes")), 16777216);
	assert_string_equal(json_string_value(json_object_get(session, "start")),
		"1970-01-01T00:00:00.000000012Z");
	app = json_array_get(json_object_get(doc, "applications"), 1);
	assert_true(json_is_null(json_object_get(app, "probe")));
	assert_string_equal(
		json_string_value(json_object_get(app, "error")), "it runs without the probe");
	assert_string_equal(json_string_value(json_object_get(app, "primary")), "pmd");
	assert_non_null(strstr(json_string_value(json_object_get(app, "load_probe")), "-d /"));
	assert_true(json_is_null(json_object_get(app, "pid")));
	assert_int_equal(json_array_size(json_object_get(app, "ports")), 0);
	json_decref(doc);
}

static void stopped_applications_are_marked(void **state)
{
	json_t *doc;

	test_apps.app[1].error = -EHOSTDOWN;
	assert_int_equal(list("--json bare"), STATUS_OK);
	doc = json_loads(printed, 0, NULL);
	assert_true(json_is_true(json_object_get(
		json_array_get(json_object_get(doc, "applications"), 0), "stopped")));
	json_decref(doc);
}

/* Any user could make root's list slow. */
static void other_users_have_three_seconds_in_all(void **state)
{
	for (size_t i = 0; i < TEST_APPS_MAX; i++) {
		test_apps.app[i] = test_apps.app[0];
		test_apps.app[i].foreign = i > 0;
		test_apps.app[i].answer_ns = i == 1 ? 3100000000 : 1000000000;
	}
	test_apps.app[1].dir = "/run/dpdk/slow";
	test_apps.app[2].dir = "/run/dpdk/late";
	test_apps.app[3].dir = "/run/dpdk/own";
	test_apps.app[3].foreign = false;
	test_apps.count = 4;
	assert_int_equal(list(""), STATUS_OK);
	assert_int_equal(test_apps.opened, 3);
	assert_non_null(strstr(printed, "(/run/dpdk/late)\n  cannot attach: not asked, as other "
					"applications of other users take too long\n"));
}

#define with_apps(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_apps(applications_ports_and_sessions),
		with_apps(link_types_have_a_column),
		with_apps(processes_without_telemetry_and_probe),
		with_apps(a_probe_of_another_version),
		with_apps(applications_that_cannot_be_attached_to),
		with_apps(processes_of_containers_have_two_ids),
		with_apps(long_names_fit_a_terminal),
		with_apps(applications_are_chosen_by_name_and_number),
		with_apps(primary_means_its_secondaries),
		with_apps(namesakes_are_told_apart),
		with_apps(nothing_runs),
		with_apps(devices_of_a_static_vhost_library_are_hidden),
		with_apps(as_json),
		with_apps(stopped_applications_are_marked),
		with_apps(other_users_have_three_seconds_in_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
