/* SPDX-License-Identifier: BSD-3-Clause */
/* POST /flight/NAME/trigger: an incident of ringtap flight. */
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "recorder/request.h"
#include "serve/clients.h"
#include "trigger.h"

#define PATH "/flight/"
#define VERB "/trigger"

/* The last part of a folder's path, without slashes at its end. */
static size_t name_of(const char *folder, const char **name)
{
	size_t end = strlen(folder), begin;

	while (end && folder[end - 1] == '/')
		end--;
	for (begin = end; begin && folder[begin - 1] != '/'; begin--)
		;
	*name = folder + begin;
	return end - begin;
}

/* Its index; -1: there is none. */
static int find(const struct export_triggers *t, const char *name, size_t len)
{
	for (unsigned i = 0; i < t->count; i++) {
		const char *other;

		if (name_of(t->folders[i], &other) == len && !memcmp(name, other, len))
			return (int)i;
	}
	return -1;
}

int export_trigger_add(struct export_triggers *t, const char *folder)
{
	const char *name;
	size_t len = name_of(folder, &name);

	if (!len || (len <= 2 && !memcmp(name, "..", len)))
		message_print("export: --allow-trigger '%s': no folder with a name", folder);
	else if (find(t, name, len) >= 0)
		message_print(
			"export: --allow-trigger '%s': another folder has the same name; their "
			"last parts must differ",
			folder);
	else if (t->count == EXPORT_TRIGGERS_MAX)
		message_print("export: --allow-trigger '%s': more than %d folders; give fewer",
			folder, EXPORT_TRIGGERS_MAX);
	else {
		t->folders[t->count++] = folder;
		return 0;
	}
	return -EINVAL;
}

static bool is_allowed(const struct export_triggers *t, struct MHD_Connection *c)
{
	/* A page of any site may make a browser send it. */
	if (MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN))
		return false;
	return t->from_any || clients_is_local(c);
}

static unsigned request(const char *folder, const char *comment, const char **text)
{
	int ret = request_send(folder, comment);

	*text = !ret ? "an incident is being written\n"
		: ret == -ESRCH
			? "no recorder writes to this folder\n"
			: "this exporter may not write to the folder or send to the recorder; run both "
			  "as one user\n";
	return !ret            ? MHD_HTTP_ACCEPTED
	       : ret == -ESRCH ? MHD_HTTP_SERVICE_UNAVAILABLE
			       : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

unsigned export_trigger(
	struct export_triggers *t, struct MHD_Connection *c, const char *url, const char **text)
{
	size_t len = strlen(url), around = strlen(PATH) + strlen(VERB);
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	unsigned status;
	int i = -1;

	if (len > around && !strncmp(url, PATH, strlen(PATH)) &&
		!strcmp(url + len - strlen(VERB), VERB))
		i = find(t, url + strlen(PATH), len - around);
	*text = "not found; POST to /flight/NAME/trigger, NAME the last part of a folder of "
		"--allow-trigger\n";
	if (i < 0)
		return MHD_HTTP_NOT_FOUND;
	*text = "only for this host, not by a proxy, and not from pages of other sites; see "
		"--trigger-from\n";
	if (!is_allowed(t, c))
		return MHD_HTTP_FORBIDDEN;
	/* Incidents take disk space, or the place of older ones. */
	*text = "one request a second; the one before is being written\n";
	if (t->sent_ns[i] && now - t->sent_ns[i] < NS_PER_S)
		return MHD_HTTP_TOO_MANY_REQUESTS;
	status = request(t->folders[i],
		MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "comment"), text);
	if (status == MHD_HTTP_ACCEPTED)
		t->sent_ns[i] = now;
	return status;
}
