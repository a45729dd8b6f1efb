/* SPDX-License-Identifier: BSD-3-Clause */
/* One page that needs nothing else: to read it takes neither the file nor
 * ringtap. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/html.h"
#include "base/util.h"
#include "report.h"

static const char style[] =
	":root{--ink:#1f2328;--soft:#57606a;--back:#f6f8fa;--line:#d0d7de;--mark:#0969a8;"
	"--warn:#b54708}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;max-width:66rem;padding:1rem 1.5rem 4rem;color:var(--ink);"
	"background:#fff;font:16px/1.5 system-ui,\"DejaVu Sans\",sans-serif}\n"
	"h1{font-size:1.7rem;margin:.8rem 0 .2rem;overflow-wrap:anywhere}\n"
	"h2{font-size:1.15rem;margin:2.2rem 0 .5rem}\n"
	"p,li{max-width:52rem;margin:.4rem 0}\n"
	".lead{font-size:1.15rem}.soft{color:var(--soft);font-size:.9rem}\n"
	".note{border-left:4px solid var(--warn);background:#fff4ec;padding:.4rem .8rem}\n"
	"img{max-width:100%;height:auto}\n"
	".scroll{overflow-x:auto;border:1px solid var(--line);border-radius:6px}\n"
	"table{border-collapse:collapse;width:100%;font-size:.88rem;"
	"font-variant-numeric:tabular-nums}\n"
	"th,td{padding:.35rem .65rem;border-top:1px solid var(--line);text-align:right;"
	"white-space:nowrap}\n"
	"thead th{background:var(--back);border-top:0}\n"
	".text{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:10rem}\n"
	"@media print{body{max-width:none;padding:0}.scroll{overflow:visible}}\n";

/* ---- picture ---- */

static void put_base64(FILE *f, const uint8_t *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)data[i] << 16 | (n > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
			     (n > 2 ? data[i + 2] : 0);

		putc(digits[v >> 18], f);
		putc(digits[v >> 12 & 63], f);
		putc(n > 1 ? digits[v >> 6 & 63] : '=', f);
		putc(n > 2 ? digits[v & 63] : '=', f);
	}
}

/* As an image of its own: names inside an SVG would meet those of others on the page. */
static int put_plot(const struct report *r, FILE *f)
{
	char *svg = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&svg, &len);
	int ret = memory ? report_plot(r, PLOT_SVG, memory) : -errno;

	if (memory && fclose(memory) && !ret)
		ret = -ENOMEM;
	if (!ret) {
		fputs("<p><img alt=\"latency and packets over time\" "
		      "src=\"data:image/svg+xml;base64,",
			f);
		put_base64(f, (const uint8_t *)svg, len);
		fputs("\"></p>\n", f);
	}
	free(svg);
	return ret;
}

/* ---- texts ---- */

static void put_time(FILE *f, uint64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_S);
	char text[64] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(f, "%s.%06" PRIu64 " UTC", text, ns % NS_PER_S / 1000);
}

static void put_lead(const struct report *r, FILE *f)
{
	const struct join *j = r->j;
	char received[FORMAT_LEN], lost[FORMAT_LEN], p50[32], p99[32], max[32];

	fprintf(f, "<p class=\"lead\">Of %s received packets, %s were not sent",
		format_count(received, j->received), format_count(lost, j->not_sent));
	if (j->received)
		fprintf(f, " (%.3g %%)", 100 * (double)j->not_sent / (double)j->received);
	fputs(".", f);
	if (j->sent) {
		format_ns(p50, spread_quantile(&j->all, 0.5));
		format_ns(p99, spread_quantile(&j->all, 0.99));
		format_ns(max, (double)j->all.max);
		fprintf(f,
			" Half of the others left after %s, 99 %% after %s, the last one after "
			"%s.",
			p50, p99, max);
	}
	fprintf(f,
		" %s packets were sent after "
		"others of their flow that came later.</p>\n",
		format_count(lost, j->reordered));
}

static void put_facts(const struct report *r, FILE *f)
{
	struct fact facts[FACTS_MAX];
	unsigned n = facts_make(facts, r);
	char count[FORMAT_LEN];

	fputs("<div class=\"scroll\"><table>\n", f);
	for (unsigned i = 0; i < n; i++) {
		fprintf(f, "<tr><td class=\"text\">%s</td><td>%s</td><td>", facts[i].name,
			format_count(count, facts[i].count));
		if (!isnan(facts[i].share))
			fprintf(f, "%.4g %%", 100 * facts[i].share);
		fputs("</td><td class=\"text\">", f);
		html_text(f, facts[i].meaning);
		fputs("</td></tr>\n", f);
	}
	fputs("</table></div>\n", f);
}

static void put_note(void *f, const char *text)
{
	fputs("<p class=\"note\">", f);
	html_text(f, text);
	fputs("</p>\n", f);
}

static void put_where(const struct report *r, FILE *f)
{
	uint32_t known = 0; /* applications: their ids are 0, 1, … in order of their first ports */

	fputs("<p class=\"soft\">", f);
	for (uint32_t i = 0; i < records_port_count(r->records); i++) {
		const struct port *p = records_port(r->records, i);

		if (!p->application[0] || p->application_id < known)
			continue;
		fputs(known ? ", " : "DPDK application ", f);
		html_text(f, p->application);
		known = p->application_id + 1u;
	}
	if (known)
		fputs(", ", f);
	put_time(f, r->j->first_ns);
	fputs(" to ", f);
	put_time(f, r->j->last_ns);
	fputs("</p>\n", f);
}

static void put_method(const struct report *r, FILE *f)
{
	char timeout[32];

	format_ns(timeout, (double)r->j->timeout_ns);
	fprintf(f,
		"<h2>How it was measured</h2>\n<ul>\n"
		"<li>ringtap %s recorded the packets inside the application: as received, when a "
		"burst came out of the driver, and as sent, when it was handed to the driver. "
		"Records of one packet have the same id. Time in the queues of NICs is not "
		"included.</li>\n"
		"<li>A packet counts as not sent if it was received and not handed to a driver "
		"within %s. The reason is not visible from outside: the application dropped or "
		"consumed it, holds it, or sent a copy that has no id.</li>\n"
		"%s<li>A packet is reordered if it was received before, and sent after, another "
		"packet of its flow. Of packets of one time stamp in different queues the order "
		"is not known; they do not count.</li>\n"
		"<li>Frame numbers are those of Wireshark, over all files. Changes are those of "
		"the outermost headers.</li>\n</ul>\n",
		RINGTAP_VERSION, timeout,
		r->j->fates.present
			? "<li>A packet counts as not offered if its mbuf was used again, or was "
			  "found free, before any port was handed the packet. Why is not "
			  "visible.</li>\n"
			: "");
}

int report_html(const struct report *r, FILE *f)
{
	struct sheet sheets[SHEETS];
	char title[256];
	int ret = sheets_make(sheets, r);

	report_title(r, title);
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	      "<meta name=\"viewport\" content=\"width=device-width\"><title>",
		f);
	html_text(f, title);
	fprintf(f, "</title>\n<style>\n%s</style></head><body>\n<h1>", style);
	html_text(f, title);
	fputs("</h1>\n", f);
	put_where(r, f);
	put_lead(r, f);
	notes_make(r, put_note, f);
	put_facts(r, f);
	ret = ret ?: put_plot(r, f);
	for (int i = 0; i < SHEETS && !ret; i++)
		sheet_html(&sheets[i], f);
	put_method(r, f);
	fputs("</body></html>\n", f);
	sheets_free(sheets);
	return ret;
}
