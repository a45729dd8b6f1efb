/* SPDX-License-Identifier: BSD-3-Clause */
/* --users: whose applications are watched. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

static int add_user(struct watch *w, const char *name)
{
	const struct passwd *user;
	uint64_t number;

	if (w->user_count == WATCH_USERS)
		return message_fail(-EINVAL,
			"%s: --users %s: more than %d users; give fewer, or all", w->command, name,
			WATCH_USERS);
	user = parse_number(name, UINT32_MAX, &number) ? getpwnam(name) : NULL;
	if (!user && parse_number(name, UINT32_MAX, &number))
		return message_fail(-EINVAL,
			"%s: --users %s: no such user; give names or numbers, or all", w->command,
			name);
	w->users[w->user_count++] = user ? user->pw_uid : (uint32_t)number;
	return 0;
}

int watch_add_users(struct watch *w, const char *list)
{
	char *copy = strdup(list), *rest = NULL;
	int ret = copy ? 0 : -ENOMEM;

	if (!list[strspn(list, ",")]) {
		message_print("%s: --users '%s': no user; give names or numbers, or all",
			w->command, list);
		ret = -EINVAL;
	}
	w->by_user = strcmp(list, "all");
	for (char *name = copy ? strtok_r(copy, ",", &rest) : NULL; w->by_user && name && !ret;
		name = strtok_r(NULL, ",", &rest))
		ret = add_user(w, name);
	free(copy);
	return ret;
}
