/* SPDX-License-Identifier: BSD-3-Clause */
/* The largest flows of an application, from a sample of received packets. */
#include <stdio.h>

#include "base/json.h"
#include "base/util.h"
#include "making.h"

static void flow_row(json_t *row, const struct flow_row *f)
{
	put_text(row, f->name);
	view_append(row, f->packets.value);
	view_append(row, f->packets.bound);
	view_append(row, f->bits.value);
	view_append(row, f->bits.bound);
	view_append(row, f->share.value);
	view_append(row, f->share.bound);
	view_append(row, f->mean.value);
	view_append(row, f->mean.bound);
	put_text(row, f->place);
}

static void notes(json_t *panel, const struct flow_rows *rows)
{
	char text[512], lost[FORMAT_LEN];

	if (rows && *rows->why) {
		snprintf(text, sizeof(text), "There are none: %s.", rows->why);
		view_panel_note(panel, text);
	} else if (!rows || !rows->sample) {
		view_panel_note(panel, "Counting begins.");
	} else if (rows->sample > 1) {
		snprintf(text, sizeof(text),
			"One of %u received packets is counted in each second: estimates, which "
			"are within ± of the truth in 95 of 100 cases.",
			rows->sample);
		view_panel_note(panel, text);
	} else {
		view_panel_note(panel, "All received packets of each second are counted.");
	}
	if (rows && rows->lost) {
		snprintf(text, sizeof(text),
			"%s packets that were to be counted are missing: the server was too slow. "
			"Give it a CPU.",
			format_count(lost, rows->lost));
		view_panel_note(panel, text);
	}
	view_panel_note(panel, "This table costs " FLOWS_LIVE_PRICE ".");
}

void flows_table(struct making *m, const struct app *a)
{
	const struct flow_rows *rows;
	json_t *t;

	if (!m->all->flows)
		return;
	t = view_panel(&m->v, "table", "flows", "Largest flows");
	view_column(t, "flow", "text");
	view_column(t, "received", "/s");
	view_column(t, "± /s", "/s");
	view_column(t, "bits", "/s");
	view_column(t, "± bits", "/s");
	view_column(t, "share", "share");
	view_column(t, "± share", "share");
	view_column(t, "mean bytes", "");
	view_column(t, "± bytes", "");
	view_column(t, "received by", "text");
	json_put(t, "rows", json_array());
	rows = flows_live_rows(m->all->flows, a->dir);
	for (unsigned i = 0; rows && i < rows->count; i++)
		flow_row(view_row(t), &rows->list[i]);
	notes(t, rows);
	flows_live_release(m->all->flows);
}
