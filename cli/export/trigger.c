/* SPDX-License-Identifier: BSD-3-Clause */
/* POST /flight/NAME/trigger: an incident of ringtap flight. */
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "cli/flight/request.h"
#include "export.h"

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

static const char *find(const struct export_triggers *t, const char *name, size_t len)
{
	for (unsigned i = 0; i < t->count; i++) {
		const char *other;

		if (name_of(t->folders[i], &other) == len && !memcmp(name, other, len))
			return t->folders[i];
	}
	return NULL;
}

int export_trigger_add(struct export_triggers *t, const char *folder)
{
	const char *name;
	size_t len = name_of(folder, &name);

	if (!len || (len <= 2 && !memcmp(name, "..", len)))
		message_print("export: --allow-trigger %s: no folder with a name", folder);
	else if (find(t, name, len))
		message_print("export: --allow-trigger %s: another folder has the same name; their "
			      "last parts must differ",
			folder);
	else if (t->count == EXPORT_TRIGGERS_MAX)
		message_print("export: --allow-trigger %s: more than %d folders; give fewer",
			folder, EXPORT_TRIGGERS_MAX);
	else {
		t->folders[t->count++] = folder;
		return 0;
	}
	return -EINVAL;
}

static bool is_loopback(const struct sockaddr *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127));
}

static bool is_allowed(const struct export_triggers *t, struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	/* A page of any site may make a browser send it. */
	if (MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN))
		return false;
	return t->from_any || (info && is_loopback(info->client_addr));
}

unsigned export_trigger(const struct export_triggers *t, struct MHD_Connection *c, const char *url,
	const char **text)
{
	size_t len = strlen(url), around = strlen(PATH) + strlen(VERB);
	const char *folder = NULL;
	int ret;

	if (len > around && !strncmp(url, PATH, strlen(PATH)) &&
		!strcmp(url + len - strlen(VERB), VERB))
		folder = find(t, url + strlen(PATH), len - around);
	*text = "not found; POST to /flight/NAME/trigger, NAME the last part of a folder of "
		"--allow-trigger\n";
	if (!folder)
		return MHD_HTTP_NOT_FOUND;
	*text = "only for this host, and not from pages of other sites; see --trigger-from\n";
	if (!is_allowed(t, c))
		return MHD_HTTP_FORBIDDEN;
	ret = request_send(
		folder, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "comment"));
	*text = !ret ? "an incident is being written\n"
		: ret == -ESRCH
			? "no recorder writes to this folder\n"
			: "this exporter may not write to the folder or send to the recorder; run both "
			  "as one user\n";
	return !ret            ? MHD_HTTP_ACCEPTED
	       : ret == -ESRCH ? MHD_HTTP_SERVICE_UNAVAILABLE
			       : MHD_HTTP_INTERNAL_SERVER_ERROR;
}
