/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of all applications as one JSON document. */
#include "base/json.h"
#include "base/util.h"
#include "output.h"

static void set(json_t *j, const char *key, json_t *value)
{
	json_object_set_new(j, key, value);
}

static json_t *app_json(const struct watched *a)
{
	bool known = a->now;
	json_t *j =
		json_application(a->name, known ? a->info.pid : 0, known ? a->info.program : NULL);
	struct span s;

	set(j, "dir", json_text(a->dir));
	set(j, "error", a->error ? json_text(a->why) : json_null());
	set(j, "ended", json_boolean(a->ended));
	if (!a->now)
		return j;
	set(j, "dpdk", json_text(a->info.dpdk));
	set(j, "probe", json_text(a->info.probe));
	/* There is no interval yet where ringtap has just attached. */
	if (span_of(a, &s))
		metrics_json_all(j, &s);
	return j;
}

json_t *top_json(const struct watch *w, bool later)
{
	json_t *apps = json_array();

	for (size_t i = 0; i < w->count; i++)
		if (!later || !w->list[i]->ended_before)
			json_array_append_new(apps, app_json(w->list[i]));
	return json_document("top", apps);
}
