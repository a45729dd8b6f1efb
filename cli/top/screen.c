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
#include "tabs.h"
#include "base/util.h"

#define HEAD_LINES 3              /* title, views, column titles */
#define FIRST_NS   (NS_PER_S / 5) /* between updates while the table is empty */
#define PAUSE_NS   (3600 * NS_PER_S)
#define LEVELS     8 /* drill-downs to go back from */
#define KEY_ESC    27

/* Rows to which the table is narrowed: an application, by its name, of which a port or a thread, by
 * the snapshot's entry. */
struct scope {
	enum top_view view;
	char app[METRIC_TEXT_LEN]; /* "": all */
	uint32_t port, thread;     /* RINGTAP_NO_INDEX: any */
	char name[METRIC_TEXT_LEN];
};

/* The view that Enter shows of a row, and the cell that names what it is narrowed to. */
static const struct {
	enum top_view to; /* VIEW_APPS: none */
	unsigned cell;
} drills[VIEW_COUNT] = {
	[VIEW_APPS] = {VIEW_PORTS, 0},
	[VIEW_PORTS] = {VIEW_QUEUES, 1},
	[VIEW_QUEUES] = {VIEW_THREADS, 4},
	[VIEW_THREADS] = {VIEW_QUEUES, 1},
	[VIEW_LATENCY] = {VIEW_THREADS, 3},
	[VIEW_GAPS] = {VIEW_THREADS, 1},
};

struct top_screen {
	struct watch *w;
	const struct top_config *cfg;
	uint64_t interval_ns;
	struct scope at, back[LEVELS];
	unsigned level;      /* entries of back */
	char filter[32];     /* "": none */
	bool typing;         /* the filter */
	unsigned collectors; /* besides what the view needs */
	unsigned sort;       /* column; the view's count: by index */
	bool reverse, paused, help, utf8, quit;
	uint64_t updates;
	size_t first, cursor; /* rows: at the top, and selected */
	struct table table, other;
	struct curves curves;
	unsigned width[COLUMNS_MAX];
	struct faults faults;
	struct flows_live *flows;       /* NULL until its view is shown */
	char open_app[METRIC_TEXT_LEN]; /* that has the flow whose packets are shown; "": none */
	unsigned long alarm;            /* attribute of values that are bad news */
};

static const struct view *current(const struct top_screen *s)
{
	return &views[s->at.view];
}

/* Costly collectors are on only while their view is shown. */
static void switch_collectors(struct top_screen *s)
{
	unsigned collectors = s->collectors | current(s)->needs;

	if (collectors != s->w->collectors)
		watch_switch(s->w, collectors, s->w->latency_every);
	if (s->at.view == VIEW_FLOWS && !s->flows)
		s->flows = flow_view_start(s->w);
	if (s->flows)
		flows_live_want(s->flows, s->at.view == VIEW_FLOWS);
}

static void close_flow(struct top_screen *s)
{
	if (*s->open_app)
		flows_live_open(s->flows, NULL, NULL);
	*s->open_app = '\0';
}

/* Or closes it. */
static void open_flow(struct top_screen *s)
{
	const struct row *r = &s->table.rows[s->cursor];

	if (*s->open_app)
		close_flow(s);
	else if (s->flows && s->cursor < s->table.row_count && flow_view_open(s->w, s->flows, r))
		strcpy(s->open_app, r->cell[0].text);
}

static void go_to(struct top_screen *s, struct scope to)
{
	close_flow(s);
	s->at = to;
	s->sort = views[to.view].sort;
	s->reverse = false;
	s->first = s->cursor = 0;
	switch_collectors(s);
}

/* Another view of the same application. */
static void select_view(struct top_screen *s, enum top_view view)
{
	struct scope to = {.view = view, .port = RINGTAP_NO_INDEX, .thread = RINGTAP_NO_INDEX};

	strcpy(to.app, s->at.app);
	go_to(s, to);
}

static void drill_down(struct top_screen *s)
{
	struct scope to = {.view = drills[s->at.view].to,
		.port = RINGTAP_NO_INDEX,
		.thread = RINGTAP_NO_INDEX};
	const struct row *r = &s->table.rows[s->cursor];

	if (s->at.view == VIEW_FLOWS)
		open_flow(s);
	if (!to.view || s->cursor >= s->table.row_count)
		return;
	if (s->at.view == VIEW_PORTS)
		to.port = r->port;
	else
		to.thread = r->thread;
	if (s->level == LEVELS)
		memmove(s->back, s->back + 1, --s->level * sizeof(s->back[0]));
	s->back[s->level++] = s->at;
	strcpy(to.app, r->cell[0].text);
	strcpy(to.name, r->cell[drills[s->at.view].cell].text);
	*s->filter = '\0';
	go_to(s, to);
}

/* To the table, then to what was before the filter, then before Enter. */
static void go_back(struct top_screen *s)
{
	struct scope all = {
		.view = s->at.view, .port = RINGTAP_NO_INDEX, .thread = RINGTAP_NO_INDEX};

	if (*s->open_app)
		close_flow(s);
	else if (*s->filter)
		*s->filter = '\0';
	else
		go_to(s, s->level ? s->back[--s->level] : all);
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

static bool is_shown(const struct top_screen *s, const struct row *r)
{
	const struct scope *at = &s->at;
	bool found = false;

	for (unsigned i = 0; i < s->table.column_count; i++)
		found |= strcasestr(r->cell[i].text, s->filter) != NULL;
	return found && (!*at->app || !strcmp(r->cell[0].text, at->app)) &&
	       (at->port == RINGTAP_NO_INDEX || r->port == at->port) &&
	       (at->thread == RINGTAP_NO_INDEX || r->thread == at->thread);
}

static void refill(struct top_screen *s)
{
	const struct view *v = current(s);
	size_t shown = 0;

	view_fill(s->at.view, &s->table, s->w, &s->curves, s->flows);
	for (size_t i = 0; i < s->table.row_count; i++)
		if (is_shown(s, &s->table.rows[i]))
			s->table.rows[shown++] = s->table.rows[i];
	s->table.row_count = shown;
	if (s->cursor >= shown)
		s->cursor = shown ? shown - 1 : 0;
	if (s->sort < v->column_count)
		table_sort(&s->table, s->sort, s->reverse);
	table_fit(&s->table, (unsigned)COLS, s->width);
}

/* The values of an interval, of all views: another one shows its last minute at once. */
static void add_values(struct top_screen *s, uint64_t from_ns, uint64_t to_ns)
{
	for (enum top_view view = 0; view < VIEW_COUNT; view++) {
		unsigned curve = views[view].curve;

		if (!curve)
			continue;
		view_fill(view, &s->other, s->w, NULL, NULL);
		for (size_t i = 0; i < s->other.row_count; i++)
			curves_put(&s->curves, view, &s->other.rows[i],
				s->other.rows[i].cell[curve].number, from_ns, to_ns);
	}
	curves_prune(&s->curves);
}

static void draw_head(const struct top_screen *s)
{
	time_t now = (time_t)(now_ns(CLOCK_REALTIME) / NS_PER_S);
	char clock[16], line[256];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(line, sizeof(line), "ringtap top  %s  every %.1f s  %zu application%s%s%s%s%s%s",
		clock, (double)s->interval_ns / NS_PER_S, watch_attached(s->w),
		watch_attached(s->w) == 1 ? "" : "s", s->paused ? "  PAUSED" : "",
		*s->at.app ? "  of " : "", *s->at.name ? s->at.name : s->at.app,
		*s->filter || s->typing ? "  /" : "", s->filter);
	mvaddnstr(0, 0, line, COLS);
	tabs_draw(s->at.view);
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

static void draw_row(const struct top_screen *s, const struct row *r, int y, bool selected)
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
		else if (selected && !i)
			attron(A_REVERSE);
		mvaddstr(y, x + column_pad(c, text, s->width[i]), text);
		attroff((attr_t)s->alarm | A_REVERSE);
		x += (int)s->width[i] + 1;
	}
}

/* Prints what is not in the table, and why, and faults above. Returns the number of lines, from the
 * bottom. */
static int draw_reasons(const struct top_screen *s)
{
	char line[WATCH_REASON_LEN], text[WATCH_REASON_LEN];
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	const int room = LINES - HEAD_LINES - 1;
	int n = 0, reasons;

	if (s->at.view == VIEW_FLOWS && s->flows)
		for (; n < room && flow_view_note(s->w, s->flows, (size_t)n, line); n++)
			mvaddnstr(LINES - 1 - n, 0, printable(text, sizeof(text), line), COLS);
	reasons = n;
	for (; n < room && watch_reason(s->w, (size_t)(n - reasons), line); n++)
		mvaddnstr(LINES - 1 - n, 0, printable(text, sizeof(text), line), COLS);
	attron((attr_t)s->alarm);
	for (unsigned i = 0; i < FAULTS && n < room; i++)
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
	if (s->cursor < s->first)
		s->first = s->cursor;
	if (room && s->cursor >= s->first + room)
		s->first = s->cursor - room + 1;
	if (s->first + room > s->table.row_count)
		s->first = s->table.row_count > room ? s->table.row_count - room : 0;
	for (size_t i = 0; i < room && s->first + i < s->table.row_count; i++)
		draw_row(s, &s->table.rows[s->first + i], HEAD_LINES + (int)i,
			s->first + i == s->cursor);
	if (!s->table.row_count && room)
		mvaddnstr(HEAD_LINES, 0,
			!watch_attached(s->w) ? "no DPDK application with the probe runs; waiting"
			: *s->filter          ? "no row has this text; Esc shows all"
					      : view_empty(s->at.view, s->w),
			COLS);
}

static void draw_help(const struct top_screen *s)
{
	static const char *const lines[] = {
		"a applications  p ports  u queues  t threads  m mempools  l latency  g gaps",
		"k rings  x xstats of drivers  d devices  f flows, from a sample of packets",
		"left right: other view    < >: sort by column    o: own order    r: reverse",
		"b: count bytes, which costs more    + -: interval    space: pause",
		"up down PgUp PgDn Home End: select a row    /: only rows with a text",
		"Enter: what belongs to the selected row, as queues of a port    Esc: back",
		"q: quit    any other key: back"};
	const struct view *v = current(s);
	int y = HEAD_LINES - 1;
	char line[256];

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		mvaddnstr(y++, 1, lines[i], COLS - 1);
	snprintf(line, sizeof(line), "Columns of %s, where there is room:", v->name);
	mvaddnstr(++y, 1, line, COLS - 1);
	for (unsigned i = 0; i < v->column_count + (v->curve > 0) && y + 1 < LINES; i++) {
		snprintf(line, sizeof(line), "%-8s %s", v->columns[i].title,
			s->at.view == VIEW_FLOWS ? flow_view_help(i)
						 : rt_metrics[v->columns[i].id].help);
		mvaddnstr(++y, 1, line, COLS - 1);
	}
}

static void draw(struct top_screen *s)
{
	erase();
	draw_head(s);
	if (s->help)
		draw_help(s);
	else if (*s->open_app)
		flow_view_draw(s->w, s->flows, s->open_app, HEAD_LINES - 1);
	else
		draw_table(s);
	refresh();
}

/* ---- keys */

static bool scroll_key(struct top_screen *s, int key)
{
	size_t page = LINES > HEAD_LINES + 1 ? (size_t)(LINES - HEAD_LINES - 1) : 1;

	/* refill() limits it. */
	switch (key) {
	case KEY_UP: s->cursor -= s->cursor > 0; return true;
	case KEY_DOWN: s->cursor++; return true;
	case KEY_PPAGE: s->cursor -= s->cursor < page ? s->cursor : page; return true;
	case KEY_NPAGE: s->cursor += page; return true;
	case KEY_HOME: s->cursor = 0; return true;
	case KEY_END: s->cursor = s->table.row_count; return true;
	}
	return false;
}

static bool view_key(struct top_screen *s, int key)
{
	unsigned view = 0;

	while (view < VIEW_COUNT && views[view].key != key)
		view++;
	if (key == KEY_RIGHT || key == '\t')
		select_view(s, (s->at.view + 1) % VIEW_COUNT);
	else if (key == KEY_LEFT)
		select_view(s, (s->at.view + VIEW_COUNT - 1) % VIEW_COUNT);
	else if (view < VIEW_COUNT)
		select_view(s, (enum top_view)view);
	else
		return false;
	return true;
}

static bool is_delete(int key)
{
	return key == KEY_BACKSPACE || key == '\b' || key == 127;
}

static void type_filter(struct top_screen *s, int key)
{
	size_t len = strlen(s->filter);

	if (is_delete(key) && len)
		s->filter[len - 1] = '\0';
	else if (key >= ' ' && key < 127 && len < sizeof(s->filter) - 1)
		s->filter[len] = (char)key;
	if (key == KEY_ESC)
		memset(s->filter, 0, sizeof(s->filter));
	s->typing = key != KEY_ESC && key != '\r' && key != '\n' && key != KEY_ENTER;
}

static void take_key(struct top_screen *s, int key)
{
	bool helped = s->help;

	if (s->typing) {
		type_filter(s, key);
		return;
	}
	s->help = false;
	if (key == 'q' || key == 'Q')
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
	case '\r':
	case '\n':
	case KEY_ENTER: drill_down(s); break;
	case '\b':
	case 127:
	case KEY_BACKSPACE:
	case KEY_ESC: go_back(s); break;
	case '/':
		memset(s->filter, 0, sizeof(s->filter));
		s->typing = true;
		break;
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
	uint64_t next = now_ns(CLOCK_MONOTONIC), stepped = next, marked = next;

	while (!s->quit) {
		uint64_t now = now_ns(CLOCK_MONOTONIC), until = stepped + WATCH_STEP_NS;
		bool changed;

		if (next < until)
			until = next;
		changed = wait_input(s, pause_ns(s, now, until));
		now = now_ns(CLOCK_MONOTONIC);
		watch_lock(s->w);
		if (!s->paused && now >= until) {
			if (now >= next && s->updates) {
				watch_mark(s->w);
				marked = stepped;
			}
			watch_step(s->w);
			stepped = now;
		}
		if (!s->paused && now >= next) {
			bool any = s->updates;

			add_values(s, marked, now);
			refill(s);
			faults_find(&s->faults, s->w);
			any |= s->table.row_count;
			/* Each is shown for its interval. */
			s->updates += s->table.row_count > 0;
			s->quit |= s->cfg->count && s->updates > s->cfg->count;
			/* The first interval may be a short one: there is something to show. */
			next = now + (any || s->interval_ns < FIRST_NS ? s->interval_ns : FIRST_NS);
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
		.at = {.view = cfg->view, .port = RINGTAP_NO_INDEX, .thread = RINGTAP_NO_INDEX},
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
			"top: cannot start a thread that finds applications: %s", start_error(ret));
	s.utf8 = term_utf8();
	if (!term_begin(&s.alarm))
		return message_fail(STATUS_FAILED,
			"top: the terminal is of an unknown kind; set TERM, or use --once or --json");
	set_escdelay(25);
	stop_after(cfg->duration_ns);
	switch_collectors(&s);
	loop(&s);
	endwin();
	flows_live_stop(s.flows);
	table_free(&s.table);
	table_free(&s.other);
	free(s.curves.list);
	return STATUS_OK;
}
