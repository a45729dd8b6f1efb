/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app.h"
#include "common/clock.h"
#include "eal.h"
#include "memory.h"
#include "ringtap/probe.h"
#include "options.h"
#include "signals.h"
#include "base/util.h"

#define CALIBRATE_NS  100000000
#define CALIBRATE_MAX 20
#define AGREE         2e-6 /* maximum relative difference of two measurements */

struct instant {
	uint64_t tsc, ns;
};

/* Reads the TSC and the raw clock, which is never adjusted or set, at the same time: reads the
 * clock between two reads of the TSC, and takes the closest pair of several, as the thread may be
 * interrupted in between. */
static struct instant read_clocks(void)
{
	struct instant best = {0};
	uint64_t narrow = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before = rt_tsc(), ns = now_ns(CLOCK_MONOTONIC_RAW), after = rt_tsc();

		if (after - before >= narrow)
			continue;
		narrow = after - before;
		best = (struct instant){before + narrow / 2, ns};
	}
	return best;
}

/* Measures ticks per second since from, over at least CALIBRATE_NS. */
static double measure_hz(const struct instant *from, struct instant *to)
{
	*to = read_clocks();
	while (to->ns - from->ns < CALIBRATE_NS) {
		const struct timespec rest = {
			.tv_nsec = (long)(CALIBRATE_NS - (to->ns - from->ns))};

		nanosleep(&rest, NULL);
		*to = read_clocks();
	}
	return (double)(to->tsc - from->tsc) * 1e9 / (double)(to->ns - from->ns);
}

/* Measures until two successive results agree. EAL rounds its own result to 10 MHz, an error of up
 * to 0.2 %. */
static void calibrate(struct instant from)
{
	struct instant to;
	double hz = measure_hz(&from, &to), before;
	int i = 0;

	do {
		before = hz;
		from = to;
		hz = measure_hz(&from, &to);
	} while (fabs(hz - before) > AGREE * hz && ++i < CALIBRATE_MAX);
	if (i == CALIBRATE_MAX)
		message_print(
			"the TSC rate is inexact: measurements differ by %.0f ppm; times in the "
			"report may be off by as much",
			fabs(hz - before) / hz * 1e6);
	run.hz = (uint64_t)((hz + before) / 2 + 0.5);
}

static void start_probe(struct app *a)
{
	int ret;

	if (a->config->plane != PLANE_DPDK)
		return;
	if (a->config->no_probe) {
		ringtap_probe_stop(); /* telemetry commands cannot start it then */
		return;
	}
	ret = ringtap_probe_start();
	a->probe = !ret || ret == -EALREADY;
	if (!a->probe)
		message_print(
			"cannot start the ringtap probe: %s; running without it", strerror(-ret));
}

static int report(struct app *a, int argc, char **argv)
{
	int ret = a->config->json ? report_json(a, argc, argv) : report_text(a);

	if (ret)
		message_print("cannot write to standard output: %s", strerror(errno));
	return report_samples(a) || ret ? STATUS_FAILED : STATUS_OK;
}

static void linger(uint64_t ns)
{
	fflush(stdout);
	if (ns)
		signals_wait(ns);
}

/* Makes and runs the roles, and prints the report. EAL must be started for the DPDK plane. */
static int work(struct app *a, struct fwd_config *c, int argc, char **argv)
{
	int ret;

	if (a->config->plane == PLANE_DPDK && ports_make_rings(a->config))
		return STATUS_FAILED;
	if (app_make(a, c))
		return STATUS_FAILED;
	if (a->config->plane == PLANE_DPDK && ports_start(&a->ports, a->config))
		return STATUS_FAILED;
	ret = app_init_roles(a);
	if (!ret) {
		start_probe(a);
		ret = app_run(a);
	}
	if (ret)
		return STATUS_FAILED;
	ret = report(a, argc, argv);
	linger(a->config->linger_ns);
	return ret;
}

static int go(struct fwd_config *c, int argc, char **argv)
{
	static struct app a;
	struct instant begin = read_clocks();
	int status;

	a.config = c;
	signals_block();
	if (memory_check(c) || (c->plane == PLANE_DPDK && eal_start(c)))
		return STATUS_FAILED;
	calibrate(begin);
	status = work(&a, c, argc, argv);
	app_free(&a);
	if (c->plane == PLANE_DPDK) {
		ringtap_probe_stop(); /* no reader may attach during the teardown */
		ports_stop(&a.ports);
		eal_stop();
	}
	return status;
}

static int run_fwd(const struct command *self, int argc, char **argv)
{
	static struct fwd_config c;
	int own = argc, ret;

	config_init(&c);
	for (int i = 1; i < argc && own == argc; i++)
		if (!strcmp(argv[i], "--"))
			own = i;
	if (own < argc) {
		c.eal_argv = argv + own + 1;
		c.eal_argc = argc - own - 1;
		argv[own] = NULL; /* getopt() requires the end mark */
	}
	ret = options_parse(self, own, argv, &c);
	if (own < argc)
		argv[own] = "--";
	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	return config_check(&c) ? STATUS_USAGE : go(&c, argc, argv);
}

int main(int argc, char **argv)
{
	message_program = "ringtap-fwd";
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("ringtap-fwd " RINGTAP_VERSION "\n");
		return STATUS_OK;
	}
	/* Used by the build only: not in the help. */
	if (argc == 2 && !strcmp(argv[1], "--describe"))
		return commands_describe((const struct command *const[]){&cmd_fwd, NULL});
	return run_fwd(&cmd_fwd, argc, argv);
}
