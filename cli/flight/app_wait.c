/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --wait: until the application runs, and until it can be attached to.
 *
 * Each attempt to load the probe interrupts a thread of the application. Where attempts fail they
 * become rare.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app_wait.h"
#include "base/signals.h"
#include "base/util.h"
#include "target/which_app.h"

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

/* word NULL: any application. pid: of the first one, 0 if it is not known. */
static bool is_running(const char *word, uint64_t *pid)
{
	size_t len = word ? strcspn(word, ":") : 0;
	struct ringtap_apps *apps;
	int found = 0;

	*pid = 0;
	if (ringtap_apps_find(&apps))
		return false;
	if (len)
		found = target_app(apps, word, len, NULL);
	if (found >= 0 && (size_t)found < ringtap_apps_count(apps))
		*pid = ringtap_apps_pid(apps, (size_t)found);
	/* Attaching says which ones several are. */
	else if (found != -ENOTUNIQ)
		found = -ENOENT;
	ringtap_apps_free(apps);
	return found != -ENOENT;
}

bool app_wait(const struct flight_config *c)
{
	const char *word = c->words[0];
	bool said = c->quiet;
	uint64_t pid;

	while (!is_running(word, &pid)) {
		if (!said)
			fprintf(stderr, "Waiting for %s%s\n", word ? "" : "an application",
				word ? word : "");
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
	if (!is_running(c->words[0], &pid)) {
		*a = (struct retry){0};
		return app_wait(c);
	}
	end += retry_delay(a, pid);
	if (!c->quiet)
		fprintf(stderr, "Trying again in %u s\n", (unsigned)(a->delay_ns / NS_PER_S));
	while (now_ns(CLOCK_MONOTONIC) < end) {
		if (stop_wait(LOOK_NS))
			return false;
		if (!is_running(c->words[0], &pid) || pid != a->pid) {
			*a = (struct retry){0};
			return app_wait(c);
		}
	}
	return true;
}
