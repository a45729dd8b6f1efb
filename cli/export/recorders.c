/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics of flight recorders, which answer by themselves: no snapshot has them. */
#include <string.h>

#include "recorders.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

/* Two conditions may be the same, with other windows, and an application's owner may answer as
 * several recorders of one folder: one series. */
static bool is_first(const json_t *list, size_t i, const char *key)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(text_of(json_array_get(list, k), key),
			    text_of(json_array_get(list, i), key)))
			return false;
	return true;
}

static void put(
	struct export_text *t, const struct rt_metric *m, const char *labels, const json_t *object)
{
	const json_t *v = json_object_get(object, m->key);

	if (json_is_number(v) && export_takes(t, 1))
		export_number(
			t, "", labels, json_number_value(v) * (m->unit == RT_UNIT_NS ? 1e-9 : 1));
}

void export_recorders(struct export_text *t, enum rt_metric_id id, const struct exported *x)
{
	const struct rt_metric *m = &rt_metrics[id];
	char labels[LABELS_LEN];
	json_t *r;
	size_t n, k;

	json_array_foreach(x->recorders, n, r)
	{
		const json_t *conditions = json_object_get(r, "conditions");

		if (!is_first(x->recorders, n, "folder"))
			continue;
		if (m->object == RT_OBJECT_RECORDER)
			put(t, m,
				export_labels(labels, "app", x->label, "folder",
					text_of(r, "folder"), NULL),
				r);
		for (k = 0; m->object == RT_OBJECT_CONDITION && k < json_array_size(conditions);
			k++)
			if (is_first(conditions, k, "condition"))
				put(t, m,
					export_labels(labels, "app", x->label, "folder",
						text_of(r, "folder"), "condition",
						text_of(json_array_get(conditions, k), "condition"),
						NULL),
					json_array_get(conditions, k));
	}
}
