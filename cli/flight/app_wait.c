/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --wait: until the application runs, and until it can be attached to.
 *
 * Each attempt to load the probe interrupts a thread of the application. Where attempts fail they
 * become rare.
 */
#include <stdio.h>
#include <string.h>

#include "app_wait.h"
#include "base/signals.h"
#include "base/util.h"
#include "target/attach_app.h"

#define LOOK_NS  (NS_PER_S / 2)
#define FIRST_NS NS_PER_S
#define LAST_NS  (60 * NS_PER_S)

uint64_t retry_delay(struct retry *a, uint64_t pid)
{
	bool again = a->delay_ns && a->pid == pid;

	a->pid = pid;
	a->delay_ns = again ? 2 * a->delay_ns : FIRST_NS;
	if (a->delay_ns > LAST_NS)
		a->delay_ns = LAST_NS;
	return a->delay_ns;
}

/* name NULL: any application. pid: of the first one, 0 if it is not known. */
static bool is_running(const char *name, uint64_t *pid)
{
	struct ringtap_apps *apps;
	bool found = false;

	*pid = 0;
	if (ringtap_apps_find(&apps))
		return false;
	for (size_t i = 0; i < ringtap_apps_count(apps) && !found; i++) {
		found = !name || attach_is_meant(apps, i, name);
		if (found)
			*pid = ringtap_apps_pid(apps, i);
	}
	ringtap_apps_free(apps);
	return found;
}

bool app_wait(const struct flight_config *c)
{
	bool said = c->quiet;
	uint64_t pid;

	while (!is_running(c->app, &pid)) {
		if (!said)
			fprintf(stderr, "Waiting for %s%s\n", c->app ? "" : "an application",
				c->app ? c->app : "");
		said = true;
		if (stop_wait(LOOK_NS))
			return false;
	}
	return true;
}

bool app_wait_retry(const struct flight_config *c, struct retry *a)
{
	uint64_t pid, end = now_ns(CLOCK_MONOTONIC);

	/* It has ended, which may be why. */
	if (!is_running(c->app, &pid)) {
		*a = (struct retry){0};
		return app_wait(c);
	}
	end += retry_delay(a, pid);
	if (!c->quiet)
		fprintf(stderr, "Trying again in %u s\n", (unsigned)(a->delay_ns / NS_PER_S));
	while (now_ns(CLOCK_MONOTONIC) < end) {
		if (stop_wait(LOOK_NS))
			return false;
		if (!is_running(c->app, &pid) || pid != a->pid) {
			*a = (struct retry){0};
			return app_wait(c);
		}
	}
	return true;
}
