/* SPDX-License-Identifier: BSD-3-Clause */
#include <ncurses.h>
#include <stdio.h>
#include <string.h>

#include "base/signals.h"
#include "base/util.h"
#include "flow_view.h"

#define FLOWS_TOP 100
/* At most: attaching, the rate, and an interval, on a machine that is busy. */
#define SETTLE_NS (60 * NS_PER_S)

/* The metrics have the units; their meaning is that of flow_view_help(). */
const struct column flow_view_columns[FLOW_VIEW_COLUMNS] = {
	{"APP", 8, 1, RT_M_APP_NAME, false, false},
	{"FLOW", 16, 0, RT_M_QUEUE_PORT, false, false},
	{"PPS", 6, 0, RT_M_PACKET_RATE, false, false},
	{"+-PPS", 6, 2, RT_M_PACKET_RATE, false, false},
	{"BIT/s", 6, 0, RT_M_BIT_RATE, false, false},
	{"+-BIT/s", 7, 3, RT_M_BIT_RATE, false, false},
	{"SHARE%", 6, 4, RT_M_BUSY_CALLS, false, false},
	{"+-SHARE%", 8, 8, RT_M_BUSY_CALLS, false, false},
	{"BYTES", 6, 5, RT_M_PER_CALL, false, false},
	{"+-BYTES", 7, 9, RT_M_PER_CALL, false, false},
	{"1-OF", 5, 6, RT_M_PORT_ID, false, false},
	{"RXPORT", 12, 7, RT_M_QUEUE_PORT, false, false},
};

const char *flow_view_help(unsigned column)
{
	static const char *const help[FLOW_VIEW_COLUMNS] = {
		"application, by its file-prefix",
		"addresses, ports, protocol and VLAN of received packets",
		"packets a second, estimated from the sample",
		"the true PPS is within PPS +- this in 95 of 100 cases",
		"bits a second, without FCS, estimated from the sample",
		"the true BIT/s is within BIT/s +- this in 95 of 100 cases",
		"of the packets of the application",
		"the true SHARE% is within SHARE% +- this in 95 of 100 cases",
		"mean bytes of a packet",
		"the true BYTES are within BYTES +- this in 95 of 100 cases; none: one packet",
		"N: one of N packets is counted",
		"port and queue that received the last packet",
	};

	return help[column];
}

void flow_view_add(struct table *t, const struct watched *a, const struct flow_rows *rows)
{
	for (unsigned i = 0; rows && i < rows->count; i++) {
		const struct flow_row *f = &rows->list[i];
		struct row *r = table_add(t);

		if (!r)
			return;
		r->app = a;
		r->index = i;
		r->port = r->thread = RINGTAP_NO_INDEX;
		printable(r->cell[0].text, sizeof(r->cell[0].text), a->name);
		printable(r->cell[1].text, sizeof(r->cell[1].text), f->name);
		r->cell[2].number = f->packets.value;
		r->cell[3].number = f->packets.bound;
		r->cell[4].number = f->bits.value;
		r->cell[5].number = f->bits.bound;
		r->cell[6].number = f->share.value;
		r->cell[7].number = f->share.bound;
		r->cell[8].number = f->mean.value;
		r->cell[9].number = f->mean.bound;
		r->cell[10].number = rows->sample;
		printable(r->cell[11].text, sizeof(r->cell[11].text), f->place);
	}
}

struct flows_live *flow_view_start(struct watch *w)
{
	struct flows_live *f;
	int ret = flows_live_start(
		&f, &(struct flows_live_options){
			    .watch = w, .top = FLOWS_TOP, .interval_ns = NS_PER_S});

	if (ret)
		message_print("top: cannot start a thread that counts flows: %s", start_error(ret));
	return f;
}

static bool is_shown(const struct watched *a)
{
	return a->mon && !a->ended && !a->secondary;
}

/* Whether its first interval is complete, or it has a reason why there is none. */
static bool has_rows(const struct flow_rows *rows)
{
	return rows && (rows->sample || *rows->why);
}

static bool is_settled(struct watch *w, struct flows_live *f)
{
	bool settled = true;

	watch_lock(w);
	for (size_t i = 0; i < w->count; i++) {
		settled &= !is_shown(w->list[i]) || has_rows(flows_live_rows(f, w->list[i]->dir));
		flows_live_release(f);
	}
	watch_unlock(w);
	return settled;
}

void flow_view_settle(struct watch *w, struct flows_live *f)
{
	const uint64_t until = now_ns(CLOCK_MONOTONIC) + SETTLE_NS;

	while (!is_settled(w, f) && now_ns(CLOCK_MONOTONIC) < until && !stop_wait(NS_PER_S / 20))
		watch_ends(w); /* one that ends has no rows any more */
}

bool flow_view_note(struct watch *w, struct flows_live *f, size_t n, char line[WATCH_REASON_LEN])
{
	if (!n--) {
		snprintf(line, WATCH_REASON_LEN, "This view costs %s.", FLOWS_LIVE_PRICE);
		return true;
	}
	for (size_t i = 0; i < w->count; i++) {
		const struct flow_rows *rows = flows_live_rows(f, w->list[i]->dir);
		const bool begins = is_shown(w->list[i]) && !has_rows(rows);
		const bool noted = (begins || (rows && (*rows->why || rows->lost))) && !n--;
		char lost[FORMAT_LEN];

		if (noted && begins)
			snprintf(line, WATCH_REASON_LEN,
				"no flows of '%s' yet: its first interval is not complete",
				w->list[i]->name);
		else if (noted && *rows->why)
			snprintf(line, WATCH_REASON_LEN, "no flows of '%s': %s", w->list[i]->name,
				rows->why);
		else if (noted)
			snprintf(line, WATCH_REASON_LEN,
				"'%s': %s packets of the sample are missing: this command was too "
				"slow; give it a CPU",
				w->list[i]->name, format_count(lost, rows->lost));
		flows_live_release(f);
		if (noted)
			return true;
	}
	return false;
}

/* The folder of an application by its name as a cell has it; NULL: it has gone. */
static const char *dir_of(const struct watch *w, const char *app)
{
	char name[METRIC_TEXT_LEN];

	for (size_t i = 0; i < w->count; i++)
		if (!strcmp(printable(name, sizeof(name), w->list[i]->name), app))
			return w->list[i]->dir;
	return NULL;
}

bool flow_view_open(const struct watch *w, struct flows_live *f, const struct row *r)
{
	const char *dir = dir_of(w, r->cell[0].text);

	return dir && flows_live_open(f, dir, r->cell[1].text);
}

/* Lines that do not fit go on in the next one: the command is whole. */
void flow_view_draw(const struct watch *w, struct flows_live *f, const char *app, int y)
{
	const char *dir = dir_of(w, app);
	const struct flow_rows *rows = flows_live_rows(f, dir ? dir : "");
	const char *text = rows ? rows->detail : NULL;
	char line[512], part[512];
	size_t n;

	if (!text)
		mvaddnstr(y, 0, "waiting for packets    Esc: back", COLS);
	for (; text && *text && y < LINES; text += n, text += *text == '\n') {
		n = strcspn(text, "\n");
		if (n > (size_t)COLS)
			n = (size_t)COLS;
		if (n >= sizeof(part))
			n = sizeof(part) - 1;
		snprintf(part, sizeof(part), "%.*s", (int)n, text);
		mvaddstr(y++, 0, printable(line, sizeof(line), part));
	}
	flows_live_release(f);
}
