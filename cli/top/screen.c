/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables on a terminal. */
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "show/term.h"
#include "faults.h"
#include "output.h"
#include "base/util.h"

#define HEAD_LINES 3              /* title, views, column titles */
#define FIRST_NS   (NS_PER_S / 5) /* between updates while the table is empty */
#define PAUSE_NS   (3600 * NS_PER_S)

struct top_screen {
	struct watch *w;
	const struct top_config *cfg;
	uint64_t interval_ns;
	enum top_view view;
	unsigned collectors; /* besides what the view needs */
	unsigned sort;       /* column; the view's count: by index */
	bool reverse, paused, help, utf8, quit;
	uint64_t updates;
	size_t first; /* row at the top */
	struct table table;
	unsigned width[COLUMNS_MAX];
	struct faults faults;
	unsigned long alarm; /* attribute of values that are bad news */
};

static const char keys[] = "putmlg"; /* keys of the views, in their order */

static const struct view *current(const struct top_screen *s)
{
	return &views[s->view];
}

/* Costly collectors are on only while their view is shown. */
static void switch_collectors(struct top_screen *s)
{
	unsigned collectors = s->collectors | current(s)->needs;

	if (collectors != s->w->collectors)
		watch_switch(s->w, collectors, s->w->latency_every);
}

static void select_view(struct top_screen *s, enum top_view view)
{
	s->view = view;
	s->sort = views[view].sort;
	s->reverse = false;
	s->first = 0;
	switch_collectors(s);
}

static void move_sort(struct top_screen *s, int step)
{
	unsigned count = current(s)->column_count;

	/* Over the columns that are shown, and none. */
	do
		s->sort = (s->sort + count + 1 + (unsigned)step) % (count + 1);
	while (s->sort < count && !s->width[s->sort]);
	s->reverse = false;
}

static void change_interval(struct top_screen *s, bool longer)
{
	static const uint64_t steps[] = {100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000};
	const size_t n = sizeof(steps) / sizeof(steps[0]);
	uint64_t ms = s->interval_ns / (NS_PER_S / 1000), to = ms;

	for (size_t i = 0; i < n; i++) {
		uint64_t step = steps[longer ? n - 1 - i : i];

		if (longer ? step > ms : step < ms)
			to = step;
	}
	s->interval_ns = to * (NS_PER_S / 1000);
}

/* ---- drawing */

static void refill(struct top_screen *s)
{
	const struct view *v = current(s);

	view_fill(s->view, &s->table, s->w);
	if (s->sort < v->column_count)
		table_sort(&s->table, s->sort, s->reverse);
	table_fit(&s->table, (unsigned)COLS, s->width);
}

static void draw_head(const struct top_screen *s)
{
	time_t now = (time_t)(now_ns(CLOCK_REALTIME) / NS_PER_S);
	char clock[16], line[128];
	struct tm tm;
	int x = 0;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(line, sizeof(line), "ringtap top  %s  every %.1f s  %zu application%s%s", clock,
		(double)s->interval_ns / NS_PER_S, watch_attached(s->w),
		watch_attached(s->w) == 1 ? "" : "s", s->paused ? "  PAUSED" : "");
	mvaddnstr(0, 0, line, COLS);
	move(1, 0);
	for (unsigned i = 0; i < VIEW_COUNT; i++) {
		if (i == s->view)
			attron(A_REVERSE | A_BOLD);
		snprintf(line, sizeof(line), " %c %s ", keys[i], views[i].name);
		mvaddnstr(1, x, line, COLS - x > 0 ? COLS - x : 0);
		attroff(A_REVERSE | A_BOLD);
		x += (int)strlen(line);
	}
	mvaddnstr(1, x, "  h help  q quit", COLS - x > 0 ? COLS - x : 0);
}

static void draw_titles(const struct top_screen *s)
{
	int x = 0;

	attron(A_REVERSE);
	mvhline(2, 0, ' ', COLS);
	for (unsigned i = 0; i < s->table.column_count; i++) {
		const struct column *c = &s->table.columns[i];
		int width = (int)s->width[i];

		if (!width)
			continue;
		if (i == s->sort)
			attron(A_BOLD | A_UNDERLINE);
		mvaddstr(2, x + column_pad(c, c->title, s->width[i]), c->title);
		attroff(A_BOLD | A_UNDERLINE);
		x += width + 1;
	}
	attroff(A_REVERSE);
}

static void draw_row(const struct top_screen *s, const struct row *r, int y)
{
	char text[CELL_LEN];
	int x = 0;

	for (unsigned i = 0; i < s->table.column_count; i++) {
		const struct column *c = &s->table.columns[i];
		/* Rates below one in 1,000 seconds are left plain. */
		bool alarm = c->alarm && r->cell[i].number >= 0.001;

		if (!s->width[i])
			continue;
		cell_text(c, &r->cell[i], s->utf8, s->width[i], text, sizeof(text));
		if (alarm)
			attron((attr_t)s->alarm);
		mvaddstr(y, x + column_pad(c, text, s->width[i]), text);
		attroff((attr_t)s->alarm);
		x += (int)s->width[i] + 1;
	}
}

/* Prints what is not in the table, and why, and faults above. Returns the number of lines, from the
 * bottom. */
static int draw_reasons(const struct top_screen *s)
{
	char line[WATCH_REASON_LEN], text[WATCH_REASON_LEN];
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int n = 0;

	for (; n < LINES - HEAD_LINES - 1 && watch_reason(s->w, (size_t)n, line); n++)
		mvaddnstr(LINES - 1 - n, 0, printable(text, sizeof(text), line), COLS);
	attron((attr_t)s->alarm);
	for (unsigned i = 0; i < FAULTS && n < LINES - HEAD_LINES - 1; i++)
		if (s->faults.list[i].ns && (s->paused || now - s->faults.list[i].ns < FAULT_NS))
			mvaddnstr(LINES - 1 - n++, 0, s->faults.list[i].line, COLS);
	attroff((attr_t)s->alarm);
	return n;
}

static void draw_table(struct top_screen *s)
{
	int last = LINES - draw_reasons(s);
	size_t room = last > HEAD_LINES ? (size_t)(last - HEAD_LINES) : 0;

	draw_titles(s);
	if (s->first + room > s->table.row_count)
		s->first = s->table.row_count > room ? s->table.row_count - room : 0;
	for (size_t i = 0; i < room && s->first + i < s->table.row_count; i++)
		draw_row(s, &s->table.rows[s->first + i], HEAD_LINES + (int)i);
	if (!s->table.row_count && room)
		mvaddnstr(HEAD_LINES, 0,
			watch_attached(s->w) ? current(s)->empty
					     : "no DPDK application with the probe runs; waiting",
			COLS);
}

static void draw_help(const struct top_screen *s)
{
	static const char *const lines[] = {
		"p ports  u queues  t threads  m mempools  l latency  g gaps",
		"left right: other view    < >: sort by column    o: own order    r: reverse",
		"b: count bytes, which costs more    + -: interval    space: pause",
		"up down PgUp PgDn Home End: scroll", "q: quit    any other key: back"};
	const struct view *v = current(s);
	int y = HEAD_LINES - 1;
	char line[256];

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		mvaddnstr(y++, 1, lines[i], COLS - 1);
	snprintf(line, sizeof(line), "Columns of %s, where there is room:", v->name);
	mvaddnstr(++y, 1, line, COLS - 1);
	for (unsigned i = 0; i < v->column_count && y + 1 < LINES; i++) {
		snprintf(line, sizeof(line), "%-8s %s", v->columns[i].title,
			rt_metrics[v->columns[i].id].help);
		mvaddnstr(++y, 1, line, COLS - 1);
	}
}

static void draw(struct top_screen *s)
{
	erase();
	draw_head(s);
	if (s->help)
		draw_help(s);
	else
		draw_table(s);
	refresh();
}

/* ---- keys */

static bool scroll_key(struct top_screen *s, int key)
{
	size_t page = LINES > HEAD_LINES + 1 ? (size_t)(LINES - HEAD_LINES - 1) : 1;

	switch (key) {
	case KEY_UP: s->first -= s->first > 0; return true;
	case KEY_DOWN: s->first++; return true;
	case KEY_PPAGE: s->first -= s->first < page ? s->first : page; return true;
	case KEY_NPAGE: s->first += page; return true;
	case KEY_HOME: s->first = 0; return true;
	case KEY_END: s->first = s->table.row_count; return true;
	}
	return false;
}

static bool view_key(struct top_screen *s, int key)
{
	const char *k = key > 0 && key < 128 ? strchr(keys, key) : NULL;

	if (key == KEY_RIGHT || key == '\t')
		select_view(s, (s->view + 1) % VIEW_COUNT);
	else if (key == KEY_LEFT)
		select_view(s, (s->view + VIEW_COUNT - 1) % VIEW_COUNT);
	else if (k)
		select_view(s, (enum top_view)(k - keys));
	else
		return false;
	return true;
}

static void take_key(struct top_screen *s, int key)
{
	bool helped = s->help;

	s->help = false;
	if (key == 'q' || key == 'Q' || key == 'x')
		s->quit = true;
	if (key == KEY_RESIZE)
		s->help = helped;
	if (helped || view_key(s, key) || scroll_key(s, key))
		return;
	switch (key) {
	case 'h':
	case '?': s->help = true; break;
	case ' ': s->paused = !s->paused; break;
	case 'r': s->reverse = !s->reverse; break;
	case 'b':
		s->collectors ^= RINGTAP_BYTES;
		switch_collectors(s);
		break;
	case '<': move_sort(s, -1); break;
	case '>': move_sort(s, 1); break;
	case 'o': s->sort = current(s)->column_count; break;
	case '+': change_interval(s, true); break;
	case '-': change_interval(s, false); break;
	}
}

/* Keys, signals, the end of an application, or time. True if there is something to draw. */
static bool wait_input(struct top_screen *s, uint64_t ns)
{
	struct pollfd p[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = stop_fd(), .events = POLLIN}, {.fd = watch_fd(s->w), .events = POLLIN}};
	bool any = false;
	int key;

	/* Interrupted by SIGWINCH, of which ncurses makes a key. */
	rt_poll_ns(p, 3, stop_left(ns));
	if (p[1].revents || stop_wait(0) || p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		s->quit = true;
	while (!s->quit && (key = getch()) != ERR) {
		watch_lock(s->w);
		take_key(s, key);
		refill(s);
		watch_unlock(s->w);
		any = true;
	}
	if (p[2].revents) {
		watch_lock(s->w);
		watch_ends(s->w);
		refill(s);
		watch_unlock(s->w);
		any = true;
	}
	return any;
}

/* Until the next step; keys and ends wake a pause. */
static uint64_t pause_ns(const struct top_screen *s, uint64_t now, uint64_t until)
{
	if (s->paused)
		return PAUSE_NS;
	return now < until ? until - now : 0;
}

static void loop(struct top_screen *s)
{
	uint64_t next = now_ns(CLOCK_MONOTONIC), stepped = next;

	while (!s->quit) {
		uint64_t now = now_ns(CLOCK_MONOTONIC), until = stepped + WATCH_STEP_NS;
		bool changed;

		if (next < until)
			until = next;
		changed = wait_input(s, pause_ns(s, now, until));
		now = now_ns(CLOCK_MONOTONIC);
		watch_lock(s->w);
		if (!s->paused && now >= until) {
			if (now >= next && s->table.row_count)
				watch_mark(s->w);
			watch_step(s->w);
			stepped = now;
		}
		if (!s->paused && now >= next) {
			refill(s);
			faults_find(&s->faults, s->w);
			/* Each is shown for its interval. */
			s->updates += s->table.row_count > 0;
			s->quit |= s->cfg->count && s->updates > s->cfg->count;
			/* The first interval may be a short one: there is something to show. */
			next = now + (s->table.row_count || s->interval_ns < FIRST_NS
						     ? s->interval_ns
						     : FIRST_NS);
			changed = true;
		}
		if (changed)
			draw(s);
		watch_unlock(s->w);
	}
}

int top_screen(struct watch *w, const struct top_config *cfg)
{
	struct top_screen s = {.w = w,
		.cfg = cfg,
		.interval_ns = cfg->interval_ns,
		.view = cfg->view,
		.collectors = cfg->collectors};
	int ret;

	setlocale(LC_CTYPE, "");
	s.sort = current(&s)->sort;
	s.reverse = cfg->reverse;
	if (cfg->sort)
		s.sort = (unsigned)column_find(
			current(&s)->columns, current(&s)->column_count, cfg->sort);
	watch_step(w);
	watch_mark(w);
	ret = watch_start(w);
	if (ret)
		return message_fail(STATUS_FAILED,
			"top: cannot start a thread that finds applications: %s", strerror(-ret));
	s.utf8 = term_utf8();
	if (!term_begin(&s.alarm))
		return message_fail(STATUS_FAILED,
			"top: the terminal is of an unknown kind; set TERM, or use --once or --json");
	stop_after(cfg->duration_ns);
	loop(&s);
	endwin();
	table_free(&s.table);
	return STATUS_OK;
}
