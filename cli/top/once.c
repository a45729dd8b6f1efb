/* SPDX-License-Identifier: BSD-3-Clause */
/* Without a terminal: tables, or JSON documents. */
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/signals.h"
#include "show/term.h"
#include "output.h"
#include "base/util.h"

static void print_view(struct watch *w, const struct top_config *cfg, struct flows_live *flows)
{
	const struct view *v = &views[cfg->view];
	struct table t = {0};
	char line[WATCH_REASON_LEN];
	unsigned sort = v->sort;

	view_fill(cfg->view, &t, w, NULL, flows);
	if (cfg->sort)
		sort = (unsigned)column_find(v->columns, v->column_count, cfg->sort);
	if (sort < v->column_count)
		table_sort(&t, sort, cfg->reverse);
	if (t.row_count)
		table_print(&t, cfg->wide ? INT_MAX : term_width(), term_utf8(), stdout);
	else
		printf("%s\n", view_empty(cfg->view, w));
	for (size_t n = 0; flows && flow_view_note(w, flows, n, line); n++)
		printf("%s\n", line);
	table_free(&t);
}

static int print_json(const struct watch *w, bool line, bool later)
{
	json_t *j = top_json(w, later);

	return line ? json_print_line(j, stdout) : json_print(j, stdout);
}

/* Until a whole interval is over. False: a signal came. */
static bool interval(struct watch *w, uint64_t until)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	for (; now < until; now = now_ns(CLOCK_MONOTONIC)) {
		if (stop_wait(until - now < WATCH_STEP_NS ? until - now : WATCH_STEP_NS))
			return false;
		watch_step(w);
	}
	return true;
}

static int show(struct watch *w, const struct top_config *cfg, struct flows_live *flows, bool later)
{
	int ret = 0;

	if (!cfg->json && !cfg->once)
		term_live_head();
	if (cfg->json)
		ret = print_json(w, !cfg->once, later);
	else
		print_view(w, cfg, flows);
	return output_end("top", ret);
}

static int lines(struct watch *w, const struct top_config *cfg, struct flows_live *flows)
{
	uint64_t count = cfg->once ? 1 : cfg->count, until, end;
	int status = STATUS_OK;

	until = now_ns(CLOCK_MONOTONIC);
	end = until + (cfg->duration_ns ? cfg->duration_ns : TIME_MAX);
	for (uint64_t n = 0; !status && (!count || n < count) && until < end; n++) {
		until = until + cfg->interval_ns < end ? until + cfg->interval_ns : end;
		if (!interval(w, until))
			break;
		if (cfg->once && !cfg->duration_ns)
			watch_complete(w);
		if (flows && !n)
			flow_view_settle(w, flows);
		watch_lock(w);
		status = show(w, cfg, flows, n > 0);
		watch_mark(w);
		watch_unlock(w);
	}
	return status;
}

int top_lines(struct watch *w, const struct top_config *cfg)
{
	struct flows_live *flows = NULL;
	int status, ret;

	setlocale(LC_CTYPE, "");
	watch_step(w);
	if (cfg->once && !watch_attached(w)) {
		watch_explain(w);
		return STATUS_FAILED;
	}
	watch_settle(w);
	if (cfg->once)
		watch_explain(w);
	watch_mark(w);
	ret = cfg->once ? 0 : watch_start(w);
	if (ret)
		return message_fail(STATUS_FAILED,
			"top: cannot start a thread that finds applications: %s", start_error(ret));
	if (cfg->view == VIEW_FLOWS && !(flows = flow_view_start(w)))
		return STATUS_FAILED;
	status = lines(w, cfg, flows);
	flows_live_stop(flows);
	return status;
}
