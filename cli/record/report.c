/* SPDX-License-Identifier: BSD-3-Clause */
/* The reports on standard error. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/segment.h"
#include "counts.h"
#include "loss.h"
#include "record.h"
#include "report.h"
#include "base/util.h"
#include "fates/words.h"

static const char *loss_name(unsigned reason)
{
	return ringtap_loss_name(reason) ? ringtap_loss_name(reason) : "other";
}

const char *end_name(enum end_reason why)
{
	static const char *const names[] = {
		[END_NONE] = "none",
		[END_SIGNAL] = "signal",
		[END_PACKETS] = "packets",
		[END_DURATION] = "duration",
		[END_FILESIZE] = "filesize",
		[END_FILES] = "files",
		[END_APPLICATION] = "application",
		[END_OUTPUT] = "output",
		[END_CORRUPT] = "corrupt",
		[END_ERROR] = "error",
	};

	return names[why];
}

/* For people; --json has end_name(). */
static const char *end_text(const struct recorder *r)
{
	if (r->end != END_OUTPUT)
		return end_name(r->end);
	return r->error == -EPIPE ? "the reader of the output has closed it"
				  : "an error of the output";
}

/* Fill of the fullest application's buffer. Its rings come one after the other. */
static unsigned buffer_fill_percent(const struct recorder *r)
{
	unsigned count = ringtap_capture_ring_count(r->cap), most = 0;
	uint32_t app = UINT32_MAX;
	double used = 0;

	for (unsigned i = 0; i < count; i++) {
		struct ringtap_ring ring = {.size = sizeof(ring)};
		unsigned percent;

		if (ringtap_capture_ring(r->cap, i, &ring) || !ring.buffer_size)
			continue;
		used = (ring.app == app ? used : 0) + (double)ring.used;
		app = ring.app;
		percent = (unsigned)(100.0 * used / (double)ring.buffer_size);
		most = percent > most ? percent : most;
	}
	return most < 100 ? most : 100;
}

void report_live(struct recorder *r, uint64_t now)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	char packets[FORMAT_LEN], rate[FORMAT_LEN], lost[FORMAT_LEN];
	double seconds = (double)(now - r->report_ns) / NS_PER_S, captured;
	bool tty = isatty(STDERR_FILENO);
	int len;

	if (ringtap_capture_stats(r->cap, &s) || seconds <= 0)
		return;
	format_count(packets, recorder_written(r));
	/* May have become less: docs/memory-model.md, "Calls of the vhost library". */
	captured = (double)s.total.captured - (double)r->report_captured;
	format_si(rate, (captured > 0 ? captured : 0) / seconds);
	format_count(lost, counts_lost(&s.total));
	len = fprintf(stderr, "%s%s%spackets: %s  rate: %s/s  buffer: %u%%  lost: %s%s",
		tty ? "\r" : "", r->cfg->client ? r->cfg->client : "", r->cfg->client ? ": " : "",
		packets, rate, buffer_fill_percent(r), lost, tty ? "\x1b[K" : "\n");
	fflush(stderr);
	message_live_line(tty && len > 0 ? (size_t)len : 0);
	r->report_ns = now;
	r->report_captured = s.total.captured;
}

/* Without the application if there is only one. */
const char *report_label(const struct recorder *r, unsigned i, char out[REPORT_LABEL_LEN])
{
	struct ringtap_interface info = {.size = sizeof(info)};
	bool several = r->targets.count > 1;

	if (ringtap_capture_interface(r->cap, i, &info))
		return NULL;
	snprintf(out, REPORT_LABEL_LEN, "%s%s%s", several ? info.app_name : "", several ? ":" : "",
		info.name);
	return out;
}

/* Tables of a sample and of limited flows have one column more for each. */
static void add_counts(const struct record_config *cfg, struct sheet *t, const char *what,
	const struct ringtap_counts *c)
{
	unsigned at = 4;
	char text[FORMAT_LEN];

	if (sheet_row(t))
		return;
	sheet_put(t, 0, "%s", what);
	sheet_put_count(t, 1, c->seen);
	sheet_put_count(t, 2, c->captured);
	sheet_put_count(t, 3, c->filtered);
	if (cfg->capture.options.sample > 1)
		sheet_put_count(t, at++, c->not_sampled);
	if (cfg->first)
		sheet_put_count(t, at++, c->cut);
	sheet_put_count(t, at, counts_lost(c));
	sheet_put(t, at + 1, "%s", format_bytes(text, (double)c->bytes));
	for (unsigned i = 0; i < RINGTAP_LOST_MAX; i++)
		if (c->lost[i])
			sheet_note(t, "lost, %s: %s", loss_name(i), format_count(text, c->lost[i]));
	if (c->evicted)
		sheet_note(
			t, "flows evicted, which begin again: %s", format_count(text, c->evicted));
}

static void add_taps(const struct recorder *r, struct sheet *t, unsigned interface)
{
	unsigned count = ringtap_capture_tap_count(r->cap);

	for (unsigned i = 0; i < count; i++) {
		struct ringtap_tap tap = {.size = sizeof(tap)};
		char what[64];

		if (ringtap_capture_tap(r->cap, i, &tap) || tap.interface != interface)
			continue;
		snprintf(what, sizeof(what), "  %s queue %u",
			tap.direction == RINGTAP_TX ? "tx" : "rx", tap.queue);
		add_counts(r->cfg, t, what, &tap.counts);
	}
}

static void add_interface(const struct recorder *r, struct sheet *t, unsigned i)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	char what[REPORT_LABEL_LEN];

	if (i >= r->share_count || ringtap_capture_interface(r->cap, i, &info) ||
		!report_label(r, i, what))
		return;
	add_counts(r->cfg, t, what, &r->shares[i].counts);
	add_taps(r, t, i);
	if (info.nic_imissed || info.nic_ierrors || info.nic_nombuf || info.nic_oerrors)
		sheet_note(t,
			"NIC: missed %" PRIu64 ", no mbuf %" PRIu64 ", errors %" PRIu64
			" (RX), %" PRIu64 " (TX)",
			info.nic_imissed, info.nic_nombuf, info.nic_ierrors, info.nic_oerrors);
}

static void print_fates(const struct recorder *r, FILE *f)
{
	char received[FORMAT_LEN], offered[FORMAT_LEN], not_offered[FORMAT_LEN], open[FORMAT_LEN],
		unknown[FORMAT_LEN];
	struct rt_fates_queue q;

	if (!record_fates_total(r, &q))
		return;
	text_wrapf(f, 2, "fates: received %s = offered %s + not offered %s + open %s + unknown %s",
		format_count(received, q.received), format_count(offered, q.offered),
		format_count(not_offered, q.not_offered), format_count(open, q.open),
		format_count(unknown, q.unknown));
	text_wrapf(f, 2, "  %s", FATES_WORDS);
}

static void print_files(const struct recorder *r, FILE *f)
{
	/* Many files: only the last ones are named. */
	size_t from = r->files.count > 5 ? r->files.count - 5 : 0;

	if (from)
		fprintf(f, "%zu files, the last of them:\n", r->files.count);
	for (size_t i = from; i < r->files.count; i++) {
		char packets[FORMAT_LEN], bytes[FORMAT_LEN], name[PATH_MAX];

		snprintf(name, sizeof(name), "%s", r->files.list[i].name);
		fprintf(f, "%s: %s packets, %s bytes\n", text_one_line(name),
			format_count(packets, r->files.list[i].packets),
			format_count(bytes, r->files.list[i].bytes));
	}
}

struct sheet report_table(const struct recorder *r, const struct ringtap_stats *s)
{
	struct sheet t = {.heads = {"interface", "seen", "captured", "filtered"},
		.columns = 4,
		.cut = 1 << 0};

	if (r->cfg->capture.options.sample > 1)
		t.heads[t.columns++] = "not sampled";
	if (r->cfg->first)
		t.heads[t.columns++] = "cut";
	t.heads[t.columns++] = "lost";
	t.heads[t.columns++] = "bytes";
	for (unsigned i = 0; i < r->share_count; i++)
		add_interface(r, &t, i);
	add_counts(r->cfg, &t, "total", &s->total);
	return t;
}

static void print_table(const struct recorder *r, FILE *f, const struct ringtap_stats *s)
{
	struct sheet t = report_table(r, s);

	if (r->cfg->client)
		fprintf(f, "\nRecording for client %s:", r->cfg->client);
	fputc('\n', f);
	sheet_end(&t, 0, f);
}

void report_counts(struct recorder *r, FILE *f)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	char written[FORMAT_LEN];

	if (shares_update(r) || ringtap_capture_stats(r->cap, &s))
		return;
	print_table(r, f, &s);
	fprintf(f, "written %s so far, in %.3f s\n", format_count(written, recorder_written(r)),
		(double)(now_ns(CLOCK_MONOTONIC) - r->start_mono_ns) / NS_PER_S);
}

/* Whether packets of this direction, RINGTAP_RX or RINGTAP_TX, were captured. */
static bool has_direction(const struct recorder *r, unsigned direction)
{
	unsigned count = ringtap_capture_tap_count(r->cap);
	struct ringtap_tap tap = {.size = sizeof(tap)};

	for (unsigned i = 0; i < count; i++)
		if (!ringtap_capture_tap(r->cap, i, &tap) && tap.direction == direction &&
			tap.counts.captured)
			return true;
	return false;
}

void report_summary(const struct recorder *r, FILE *f)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	char written[FORMAT_LEN], discarded[FORMAT_LEN], rate[FORMAT_LEN];

	if (ringtap_capture_stats(r->cap, &s))
		return;
	print_table(r, f, &s);
	fprintf(f, "written %s, discarded %s, in %.3f s, %s packets/s;\nended by: %s\n",
		format_count(written, r->written),
		format_count(discarded,
			s.total.captured > r->written ? s.total.captured - r->written : 0),
		recorder_seconds(r), format_si(rate, recorder_rate(r)), end_text(r));
	print_fates(r, f);
	if (s.reordered)
		fprintf(f, "out of time order: %" PRIu64 " packets\n", s.reordered);
	if (s.queues_refused)
		fprintf(f, "not captured: %" PRIu64 " queues beyond what fits\n", s.queues_refused);
	print_files(r, f);
	if (!r->cfg->split && has_direction(r, RINGTAP_RX) && has_direction(r, RINGTAP_TX))
		text_wrapf(f, 2,
			"Both directions are in it: Wireshark takes a packet that was forwarded, and "
			"so is there twice, for a retransmission; --direction rx records it once, "
			"--split writes a file for each direction or interface");
}

/* Advice on the largest loss; full: on a full buffer. */
static const char *advice(const struct ringtap_counts *c, const char *full)
{
	const char *const texts[] = {
		[RINGTAP_LOST_FULL] = full,
		[RINGTAP_LOST_NO_RING] =
			"their threads had no ring: many began to poll within 50 ms, which ends by "
			"itself, or there are more than 256; for these, record fewer queues",
		[RINGTAP_LOST_WAIT] =
			"the recorder was too slow even for --on-full wait; try a filter",
		[RINGTAP_LOST_BAD] =
			"their mbufs are broken; look for the fault in the application",
		[RINGTAP_LOST_UNREADABLE] =
			"their data is in memory that the CPU cannot read, as a GPU's",
	};
	unsigned most = 0;

	static_assert(sizeof(texts) / sizeof(texts[0]) == RT_LOSS_COUNT, "advice on each reason");

	for (unsigned i = 1; i < RT_LOSS_COUNT; i++)
		most = c->lost[i] > c->lost[most] ? i : most;
	return c->lost[most] ? texts[most] : "this version does not know the reason";
}

/* "1.6 %", with as many digits as it takes to be above zero. */
static const char *percent(char buf[FORMAT_LEN], uint64_t part, uint64_t whole)
{
	double p = whole ? 100.0 * (double)part / (double)whole : 0;

	if (p < 0.0001)
		return "less than 0.0001 %";
	snprintf(buf, FORMAT_LEN, "%.*f %%", p >= 0.1 ? 1 : p >= 0.01 ? 2 : 4, p);
	return buf;
}

void report_buffer(const struct recorder *r)
{
	const char *why = r->cap ? ringtap_capture_buffer_error(r->cap) : "";

	if (*why)
		message_print("%s: the buffer stayed smaller than requested: %s",
			r->cfg->capture.command, why);
}

bool report_loss_text(
	const struct recorder *r, char text[REPORT_LOSS_LEN], char what[REPORT_LOSS_LEN])
{
	struct ringtap_stats s = {.size = sizeof(s)};
	char count[FORMAT_LEN], share[FORMAT_LEN], reasons[256] = "", full[320];
	uint64_t lost;

	if (!r->cap || ringtap_capture_stats(r->cap, &s) || !counts_lost(&s.total))
		return false;
	lost = counts_lost(&s.total);
	for (unsigned i = 0; i < RINGTAP_LOST_MAX; i++) {
		size_t at = strlen(reasons);

		if (s.total.lost[i])
			snprintf(reasons + at, sizeof(reasons) - at, "%s%s %s", at ? ", " : "",
				loss_name(i), format_count(count, s.total.lost[i]));
	}
	explain_full_buffer(r, full, sizeof(full));
	snprintf(text, REPORT_LOSS_LEN, "%s packets were lost (%s): %s", format_count(count, lost),
		percent(share, lost, s.total.seen), reasons);
	snprintf(what, REPORT_LOSS_LEN, "%s", advice(&s.total, full));
	return true;
}

bool report_losses(const struct recorder *r)
{
	char text[REPORT_LOSS_LEN], what[REPORT_LOSS_LEN];

	if (!report_loss_text(r, text, what))
		return false;
	message_print("%s: %s; %s", r->cfg->capture.command, text, what);
	return true;
}

bool report_fates_lost(const struct recorder *r)
{
	char count[FORMAT_LEN];
	struct rt_fates_queue q;

	if (!record_fates_total(r, &q) || !q.lost)
		return false;
	message_print("%s: the fates of %s packets were lost: the recorder was too slow for them; "
		      "try a CPU for it alone, or fewer ports",
		r->cfg->capture.command, format_count(count, q.lost));
	return true;
}
