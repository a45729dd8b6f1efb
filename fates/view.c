/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/signals.h"
#include "base/util.h"
#include "show/sheet.h"
#include "show/term.h"
#include "show/text_screen.h"
#include "view.h"

#define BUFFER_DEFAULT (64ull << 20)
#define STEP_NS        (NS_PER_S / 10) /* between two looks at keys and signals */

int fates_operand(void *ctx, const char *text)
{
	struct fates_view *v = ctx;

	return one_app_words(&v->s.words, v->s.command, text);
}

static int print_json(struct fates_view *v, bool line)
{
	json_t *j = v->document(v->ctx);

	if (!j)
		return -ENOMEM;
	return line ? json_print_line(j, stdout) : json_print(j, stdout);
}

/* A document, or tables. 0 or -errno. */
static int print(struct fates_view *v)
{
	if (v->quiet)
		return 0;
	if (v->json)
		return print_json(v, !v->once);
	if (!v->once)
		term_live_head();
	return v->text(v->ctx, stdout);
}

static int draw(struct fates_view *v, struct text_screen *screen)
{
	sheet_set_width(text_screen_width());
	return text_screen_show(screen, v->text, v->ctx);
}

/* A reading, shown where that is not left to the end. 0 or -errno. */
static int tick(struct fates_view *v, struct text_screen *screen)
{
	int ret = fates_read(&v->s);

	if (!ret)
		ret = v->reading(v->ctx, false);
	if (!ret && screen && !text_screen_paused(screen))
		ret = draw(v, screen);
	else if (!ret && !screen && !v->once)
		ret = output_end(v->s.command, print(v)) ? -EIO : 0;
	if (v->mark)
		v->mark(v->ctx);
	return ret;
}

struct timer {
	uint64_t start, tick, next, end; /* CLOCK_MONOTONIC; end 0: never */
	uint64_t left;                   /* readings */
};

static struct timer timer_begin(const struct fates_view *v)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint64_t first = v->first_ns > v->interval_ns ? v->first_ns : v->interval_ns;
	struct timer t = {.start = now, .tick = now, .next = now + first, .left = v->count};

	if (v->duration_ns)
		t.end = now + v->duration_ns;
	else if (v->once)
		t.end = v->first_ns ? t.next + v->interval_ns : t.next;
	if (!t.left)
		t.left = UINT64_MAX;
	return t;
}

static int timeout_ms(const struct timer *t, uint64_t now)
{
	uint64_t until = now + STEP_NS;

	if (t->next < until)
		until = t->next;
	if (t->end && t->end < until)
		until = t->end;
	return until > now ? (int)((until - now + 999999) / 1000000) : 0;
}

/* Keys of the screen. False: q. */
static bool keys(struct fates_view *v, struct text_screen *screen)
{
	if (!text_screen_keys(screen))
		return false;
	if (!v->open || text_screen_opened(screen) == v->opened)
		return true;
	v->opened = text_screen_opened(screen);
	v->open(v->ctx, v->opened);
	(void)draw(v, screen); /* the next reading reports errors */
	return true;
}

/* 0: the end was reached, or -errno. */
static int loop(struct fates_view *v, struct text_screen *screen)
{
	struct timer t = timer_begin(v);

	for (;;) {
		uint64_t now = now_ns(CLOCK_MONOTONIC);
		int ret = fates_take(&v->s, timeout_ms(&t, now));

		if (ret)
			return ret < 0 ? ret : 0;
		if (v->turn)
			v->turn(v->ctx);
		now = now_ns(CLOCK_MONOTONIC);
		v->seconds = (double)(now - t.tick) / NS_PER_S;
		if (stop_wait(0) || (screen && !keys(v, screen)) || (t.end && now >= t.end))
			return 0;
		if (now < t.next)
			continue;
		ret = tick(v, screen);
		if (ret || !--t.left)
			return ret;
		t.tick = now;
		t.next = now + v->interval_ns;
	}
}

/* The final, exact tables. */
static int finish(struct fates_view *v)
{
	int ret;

	/* The whole time is the interval of what follows. */
	v->seconds = fates_seconds(&v->s);
	stop_forget();
	ret = fates_end(&v->s);
	if (!ret)
		ret = fates_read(&v->s);
	if (!ret)
		ret = v->reading(v->ctx, true);
	if (ret)
		return STATUS_FAILED;
	return output_end(v->s.command, print(v));
}

static int show(struct fates_view *v)
{
	struct text_screen *screen =
		!v->quiet && term_live(v->once, v->json) == LIVE_SCREEN ? text_screen_open() : NULL;
	char text[512];
	int ret;

	v->screen = screen;
	v->opened = -1;
	ret = loop(v, screen);
	v->screen = false;
	text_screen_close(screen);
	sheet_set_width(term_width());
	if (ret && screen) { /* what was printed on it is gone */
		snprintf(text, sizeof(text), "%s", message_last());
		message_print("%s", text);
	}
	if (v->s.ended)
		message_print("%s: %s has ended; the results are those until then", v->s.command,
			v->s.app.name);
	/* Also after an error: what came before it is right. */
	return finish(v) || ret ? STATUS_FAILED : STATUS_OK;
}

int fates_run(struct fates_view *v)
{
	int ret;

	if (!v->s.buffer_size)
		v->s.buffer_size = BUFFER_DEFAULT;
	if (!v->interval_ns)
		v->interval_ns = NS_PER_S;
	ret = fates_begin(&v->s);
	if (ret != STATUS_OK)
		return ret;
	ret = stop_catch();
	if (ret)
		return message_fail(STATUS_FAILED, "%s: cannot wait for signals: %s", v->s.command,
			strerror(-ret));
	if (v->begun)
		v->begun(v->ctx);
	/* From here on it counts: tests and scripts wait for this line. */
	if (!v->quiet)
		fprintf(stderr, "Measuring %s (%s, pid %u)\n", v->s.app.name, v->s.info.program,
			v->s.info.pid);
	return show(v);
}
