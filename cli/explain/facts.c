/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts, and what they leave open. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "counted/counted.h"
#include "base/util.h"
#include "facts.h"
#include "sheets.h"
#include "fates/words.h"

static double report_seconds(const struct report *r)
{
	return (double)(r->j->last_ns - r->j->first_ns) / NS_PER_S;
}

char *report_title(const struct report *r, char *buf)
{
	const char *slash = strrchr(r->files[0], '/'), *name = slash ? slash + 1 : r->files[0];
	char text[32], of[64] = "";

	format_ns(text, report_seconds(r) * 1e9);
	if (r->file_count > 1)
		snprintf(of, sizeof(of), " and %u more", r->file_count - 1);
	snprintf(buf, 256, "%.150s%s: %s", strcmp(name, "-") ? name : "standard input", of, text);
	return buf;
}

static double share(uint64_t n, const struct report *r)
{
	return r->j->received ? (double)n / (double)r->j->received : NAN;
}

/* Open and unknown are fates that the probe has recorded: these are found by time. */
unsigned facts_make(struct fact facts[FACTS_MAX], const struct report *r)
{
	const struct join *j = r->j;
	struct fact all[FACTS_MAX] = {
		{"received", j->received, NAN, "with an id"},
		{"sent", j->sent, share(j->sent, r), "at least once"},
		{"not sent", j->not_sent, share(j->not_sent, r), ""},
		{"pending", j->open, share(j->open, r), ""},
		{"let go", j->let_go, share(j->let_go, r), "not sent until the memory was full"},
		{"copies", j->copies, NAN, "further sendings of what was sent"},
		{"made", j->made, NAN, "made by the application, without an id"},
		{"unpaired", j->unknown, NAN, ""},
	};
	unsigned n = 0;
	char timeout[32];

	format_ns(timeout, (double)j->timeout_ns);
	snprintf(all[2].meaning, sizeof(all[2].meaning), "within %s", timeout);
	snprintf(all[3].meaning, sizeof(all[3].meaning), "received less than %s before the end",
		timeout);
	snprintf(all[7].meaning, sizeof(all[7].meaning), "sent, not received in the %s before",
		timeout);
	for (unsigned i = 0; i < FACTS_MAX; i++) {
		if (all[i].count || i < 3)
			facts[n++] = all[i];
	}
	return n;
}

/* ---- notes ---- */

struct saying {
	void (*say)(void *ctx, const char *text);
	void *ctx;
};

__attribute__((format(printf, 2, 3))) static void say(
	const struct saying *to, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	to->say(to->ctx, text);
}

static bool has_sent(const struct report *r)
{
	bool any = false;

	for (uint32_t i = 0; i < records_port_count(r->records); i++)
		any |= records_port(r->records, i)->sent != 0;
	return any;
}

static uint64_t lost_by_capture(const struct report *r, bool *filtered)
{
	uint64_t lost = 0;

	*filtered = false;
	for (uint32_t i = 0; i < records_port_count(r->records); i++) {
		const struct port *p = records_port(r->records, i);
		uint64_t counted = p->lost_before + (p->lost == NO_COUNT ? 0 : p->lost);

		lost += counted > p->gaps ? counted : p->gaps;
		*filtered |= p->filtered;
	}
	return lost;
}

/* A part of the packets, on purpose. Sums are not scaled: those that are listed are the file's. */
static void sampled(const struct report *r, const struct saying *to)
{
	char n[FORMAT_LEN];
	uint32_t most = 0;
	bool first = false;

	for (uint32_t i = 0; i < records_port_count(r->records); i++) {
		uint32_t every = records_port(r->records, i)->sample;

		most = every > most ? every : most;
		first |= records_port(r->records, i)->first;
	}
	if (first)
		say(to, "The file has the beginning of each flow (--first): what came later is not "
			"lost, and not counted here.");
	if (most > 1)
		say(to,
			"The file has one of %s packets, chosen at random (--sample): all counts "
			"are those of the sample, and maxima are too low.",
			format_count(n, most));
}

/* Why a packet may be shown as not sent that was. */
static void doubts(const struct report *r, const struct saying *to)
{
	bool filtered;
	uint64_t lost = lost_by_capture(r, &filtered);
	char n[FORMAT_LEN];

	if (r->damage)
		say(to, "The file is damaged or cut off: %s. What comes before is explained.",
			r->damage);
	if (lost)
		say(to,
			"The capture lost %s packets: as many may be shown as not sent, or as "
			"unknown, in error. What would have helped, ringtap record has printed "
			"at its end: -s, a filter, a CPU for it alone, or a larger --buffer.",
			format_count(n, lost));
	sampled(r, to);
	if (filtered)
		say(to, "The file was recorded with a filter: packets that pass it only as "
			"received, or only as sent, are shown as not sent or unknown.");
	if (!has_sent(r))
		say(to, "The file has no sent packets; record both directions.");
	if (r->j->made > r->j->sent && r->j->sent < r->j->received / 2)
		say(to, "More packets were sent without an id than with one: the application may "
			"reset the flags of mbufs. Record with --infer-ids.");
	if (r->j->negative)
		say(to,
			"%s packets have time stamps that are earlier when they are sent than "
			"when they are received; their latency counts as 0.",
			format_count(n, r->j->negative));
	if (r->j->disorder)
		say(to,
			"%s records are more than 1 ms out of time order: timeouts are "
			"inexact.",
			format_count(n, r->j->disorder));
	if (r->j->outliers)
		say(to,
			"%s records have time stamps that are a second or more away from those "
			"before and after them: timeouts do not go by them.",
			format_count(n, r->j->outliers));
}

static void fate_doubts(const struct report *r, const struct saying *to)
{
	const struct known_fates *f = &r->j->fates;
	uint64_t lost = records_fates_lost(r->records);
	char n[FORMAT_LEN];

	if (!f->present)
		return;
	say(to, "Fates are %s.", FATES_WORDS);
	if (!f->ended && f->total.count[KNOWN_OPEN])
		say(to, "The recording goes on in another file, or was cut off: packets with a "
			"fate that follows there are shown as open.");
	if (lost)
		say(to,
			"The recorder lost the fates of %s packets: as many are shown as offered, in "
			"error.",
			format_count(n, lost));
	if (f->total.likely)
		say(to,
			"%s of the unknown packets were likely offered: the application has reset "
			"their flags.",
			format_count(n, f->total.likely));
	if (f->total.unseen)
		say(to,
			"%s of the unknown packets may have been sent on queues that were new: there "
			"were no hooks yet.",
			format_count(n, f->total.unseen));
	if (f->total.stopped)
		say(to,
			"%s of the unknown packets were not sent while a port was stopped that the "
			"application sends to: it refuses all packets, and no hook is called.",
			format_count(n, f->total.stopped));
	if (f->elsewhere)
		say(to,
			"%s fates are of packets that are not in the file, that were let go, or of "
			"which a copy was sent more than --timeout before.",
			format_count(n, f->elsewhere));
	if (f->no_room)
		say(to, "%s packets of further queues or protocols have no row.",
			format_count(n, f->no_room));
}

void notes_make(const struct report *r, void (*tell)(void *, const char *), void *ctx)
{
	const struct saying to = {tell, ctx};
	const struct join *j = r->j;
	char n[FORMAT_LEN];

	doubts(r, &to);
	fate_doubts(r, &to);
	if (j->again)
		say(&to,
			"%s of the copies were sent by the port and queue of the sending before: "
			"they may be packets that the driver had refused.",
			format_count(n, j->again));
	if (j->rx_no_id)
		say(&to,
			"%s received packets have no id: other holders shared their mbufs, or "
			"they were recorded without --ids.",
			format_count(n, j->rx_no_id));
	if (j->waitlist.repeated)
		say(&to,
			"%s ids were received more than once: the file joins several "
			"recordings.",
			format_count(n, j->waitlist.repeated));
	if (j->let_go)
		say(&to,
			"--buffer was too small for --timeout: %s packets were let go. Raise "
			"--buffer, or lower --timeout.",
			format_count(n, j->let_go));
	if (j->flows.no_room)
		say(&to,
			"%s packets belong to flows beyond the memory for %" PRIu32 " flows: they "
			"are in no flow's row. Raise --buffer.",
			format_count(n, j->flows.no_room), j->flows.max);
	if (j->no_room)
		say(&to, "%s packets of further queues or protocols are in no row.",
			format_count(n, j->no_room));
	if (j->no_direction)
		say(&to, "%s packets have no direction and are left out.",
			format_count(n, j->no_direction));
}

/* ---- text ---- */

static void print_note(void *f, const char *text)
{
	fputs("note: ", f);
	text_wrap(f, 6, 2, text);
}

int report_text(const struct report *r, FILE *f)
{
	struct sheet sheets[SHEETS];
	struct fact facts[FACTS_MAX];
	unsigned n = facts_make(facts, r);
	char title[256], count[FORMAT_LEN];
	int ret = sheets_make(sheets, r);

	text_wrapf(f, 2, "%s, %s records%s", report_title(r, title),
		format_count(count, r->j->records),
		has_sent(r) ? "" : ", only of received packets");
	for (unsigned i = 0; i < n; i++) {
		char part[16] = "";

		if (!isnan(facts[i].share))
			snprintf(part, sizeof(part), "%.4g %%", 100 * facts[i].share);
		fprintf(f, "  %-8s %15s  %7s  %s\n", facts[i].name,
			format_count(count, facts[i].count), part, facts[i].meaning);
	}
	for (int i = 0; i < SHEETS && !ret; i++)
		sheet_print(&sheets[i], f);
	if (r->counted && !ret)
		ret = counted_print(r->counted, (struct counted_fates){0}, f);
	fputc('\n', f);
	notes_make(r, print_note, f);
	sheets_free(sheets);
	return ret;
}
