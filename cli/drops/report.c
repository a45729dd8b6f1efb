/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/util.h"
#include "drops.h"
#include "fates/words.h"

struct driver_counts drops_driver(const struct drops *d, uint32_t interface)
{
	uint32_t port = fates_stats_port(&d->view.s, interface);
	struct driver_counts c = {
		.imissed = NAN, .rx_nombuf = NAN, .offered = NAN, .unsent = NAN, .tx_unknown = NAN};
	struct span span;

	if (port != RINGTAP_NO_INDEX && fates_span(&d->view.s, &span))
		driver_counts(&span, port, &c);
	return c;
}

bool drops_port_stopped(const struct drops *d, uint32_t interface)
{
	uint32_t port = fates_stats_port(&d->view.s, interface);
	const struct ringtap_port_stats *p =
		port == RINGTAP_NO_INDEX ? NULL : ringtap_snapshot_port(d->view.s.now, port);

	return p && p->used && p->stopped_ns;
}

static void put_known(struct sheet *t, unsigned column, double v)
{
	if (isnan(v))
		sheet_put(t, column, "-");
	else
		sheet_put_count(t, column, (uint64_t)(v + 0.5));
}

/* All ports, also those that were not requested: what was received may be refused by any. */
static int print_ports(const struct drops *d, FILE *f)
{
	const struct fates_session *s = &d->view.s;
	char name[RINGTAP_NAME_LEN], title[32] = "Ports";
	struct span span;
	struct sheet t = {.title = title,
		.heads = {"port", "missed", "no mbuf", "offered", "refused"},
		.columns = 5};
	int ret = 0;

	/* Longer than that of the packets, as drivers are read twice a second. */
	if (fates_span(s, &span))
		snprintf(title, sizeof(title), "Ports, in %.1f s", span.seconds);
	for (uint32_t i = 0; i < ringtap_capture_interface_count(s->cap) && !ret; i++) {
		struct driver_counts c = drops_driver(d, i);

		ret = sheet_row(&t);
		if (ret)
			break;
		sheet_put(&t, 0, "%s", fates_port(s, i, name));
		put_known(&t, 1, c.imissed);
		put_known(&t, 2, c.rx_nombuf);
		put_known(&t, 3, c.offered);
		put_known(&t, 4, c.unsent);
	}
	return sheet_end(&t, ret, f);
}

static int print_queues(const struct drops *d, FILE *f)
{
	const struct fates_session *s = &d->view.s;
	char name[RINGTAP_NAME_LEN];
	struct sheet t = {.title = "Received packets",
		.heads = {"port, queue", "received", "offered", "not offered", "%", "open",
			"unknown"},
		.columns = 7};
	int ret = 0;

	for (uint32_t i = 0; i < s->fates->queue_count && !ret; i++) {
		const struct ringtap_fate_queue *q = ringtap_fates_queue(s->fates, i);

		if (!fates_includes(s, q->interface))
			continue;
		ret = sheet_row(&t);
		if (ret)
			break;
		sheet_put(&t, 0, "%s, %u", fates_port(s, q->interface, name), q->queue);
		sheet_put_count(&t, 1, q->received);
		sheet_put_count(&t, 2, q->offered);
		sheet_put_count(&t, 3, q->not_offered + q->free);
		sheet_put(&t, 4, "%.1f", percent(q->not_offered + q->free, q->received));
		sheet_put_count(&t, 5, q->open);
		sheet_put_count(&t, 6, q->unknown);
	}
	return sheet_end(&t, ret, f);
}

static const char *known_text(char buf[FORMAT_LEN], double v)
{
	return isnan(v) ? "unknown" : format_count(buf, (uint64_t)(v + 0.5));
}

/* All that was lost, from the NIC to the driver. */
static void print_lost(const struct drops_sum *sum, FILE *f)
{
	char missed[FORMAT_LEN], no_mbuf[FORMAT_LEN], not_offered[FORMAT_LEN], refused[FORMAT_LEN];

	text_wrapf(f, 2,
		"Missed by the NIC: %s, no mbuf: %s, not offered: %s (%.2f %%), refused: %s",
		known_text(missed, sum->missed), known_text(no_mbuf, sum->no_mbuf),
		format_count(not_offered, sum->not_offered),
		percent(sum->not_offered, sum->received), known_text(refused, sum->refused));
}

static void print_sum(const struct drops *d, const struct drops_sum *sum, FILE *f)
{
	char received[FORMAT_LEN], offered[FORMAT_LEN], not_offered[FORMAT_LEN], open[FORMAT_LEN],
		unknown[FORMAT_LEN];

	text_wrapf(f, 2,
		"%s packets received: %s offered, %s not offered (%.2f %%), %s open, %s unknown%s",
		format_count(received, sum->received), format_count(offered, sum->offered),
		format_count(not_offered, sum->not_offered),
		percent(sum->not_offered, sum->received), format_count(open, sum->open),
		format_count(unknown, sum->unknown), d->final ? "" : " so far");
}

/* A sentence with a count in it; none where that is 0. */
static void note(FILE *f, uint64_t n, const char *before, const char *after)
{
	char text[FORMAT_LEN];

	if (n)
		text_wrapf(f, 0, "%s%s %s", before, format_count(text, n), after);
}

static void print_partial(const struct drops *d, FILE *f)
{
	char name[RINGTAP_NAME_LEN], unknown[FORMAT_LEN];

	for (uint32_t i = 0; i < ringtap_capture_interface_count(d->view.s.cap); i++) {
		struct driver_counts c = drops_driver(d, i);

		if (c.partial)
			text_wrapf(f, 0,
				"%s: the driver's counters began again in between (the application "
				"reset them, or the port was away). Its losses are the least that "
				"there were; of %s packets that TX calls got it is unknown whether "
				"they were sent.",
				fates_port(&d->view.s, i, name),
				format_count(
					unknown, isnan(c.tx_unknown) ? 0 : (uint64_t)c.tx_unknown));
	}
}

/* Packets that the tables do not have. */
static void print_losses(const struct drops *d, FILE *f)
{
	note(f, fates_lost(&d->view.s), "",
		"packets that were not offered are only in the totals: the buffer was full, or "
		"they could not be read (--buffer).");
	note(f, fates_sent_unseen(&d->view.s), "Threads without a slot sent ",
		"packets: as many of those not offered, at most, were offered.");
	note(f, fates_queues_refused(&d->view.s), "",
		"queues are not captured, there are too many: what may have been sent there is "
		"unknown.");
	note(f, d->groups.no_room, "", "packets are of further protocols.");
}

static void print_stopped(const struct drops *d, FILE *f)
{
	char name[RINGTAP_NAME_LEN];

	for (uint32_t i = 0; i < ringtap_capture_interface_count(d->view.s.cap); i++) {
		if (drops_port_stopped(d, i))
			text_wrapf(f, 0,
				"%s is stopped: it refuses all packets, and nothing counts those "
				"that are sent to it.",
				fates_port(&d->view.s, i, name));
	}
}

static void print_notes(const struct drops *d, const struct drops_sum *sum, FILE *f)
{
	uint64_t rest = d->view.s.fates->rest_offered;
	char name[RINGTAP_NAME_LEN];

	fates_port(&d->view.s, fates_upper_port(&d->view.s), name);
	fputc('\n', f);
	print_partial(d, f);
	print_losses(d, f);
	print_stopped(d, f);
	note(f, sum->inferred, "",
		"of the unknown ones were likely offered: the application has reset the flags of "
		"their mbufs.");
	note(f, sum->unseen, "",
		"of the unknown ones may have been sent on queues that were new: ringtap had no "
		"hook there yet.");
	note(f, sum->stopped, "",
		"of the unknown ones were not sent while a port was stopped that the application "
		"sends to: such a port refuses all packets, and no hook is called.");
	note(f, rest < sum->not_offered ? rest : sum->not_offered, "Up to ",
		"of those not offered may have been, without their first segment or as copies: "
		"packets were sent with the id of another mbuf.");
	fates_print_pools_unread(&d->view.s, f);
	if (fates_upper_port(&d->view.s) != RINGTAP_NO_INDEX)
		text_wrapf(f, 0, "%s receives from other ports: its packets count at those.", name);
	if (drops_is_switch(d))
		text_wrapf(f, 0,
			"Open vSwitch copies packets for internal ports, and those that it floods: "
			"what it delivers so is shown as not offered.");
	text_wrapf(f, 0,
		"missed: the NIC had no free descriptor; no mbuf: the mempool was empty; refused: the "
		"driver did not take it; " FATES_WORDS ".");
	text_wrapf(f, 0,
		"Not offered: no TX function got the packet or a clone of it. The application may "
		"have dropped, consumed or copied it; ringtap does not see why, unless the "
		"application says so (ringtap_reason()).");
}

struct counted_fates drops_fates(const struct drops *d, const struct drops_sum *sum)
{
	return (struct counted_fates){
		sum->not_offered, sum->open, d->final && !d->view.s.app.port_count};
}

int drops_text(void *ctx, FILE *f)
{
	const struct drops *d = ctx;
	char title[128];
	struct drops_sum sum;
	int ret;

	drops_add_up(d, &sum);
	fates_head(&d->view, f);
	print_lost(&sum, f);
	print_sum(d, &sum, f);
	ret = print_ports(d, f);
	if (!ret)
		ret = print_queues(d, f);
	snprintf(title, sizeof(title), "Not offered%s%.64s", d->expression ? ", that match " : "",
		d->expression ? d->expression : "");
	if (!ret)
		ret = groups_print(&d->groups, &d->view.s, title, d->view.seconds, f);
	if (!ret)
		ret = counted_print(&d->counted, drops_fates(d, &sum), f);
	if (!ret)
		print_notes(d, &sum, f);
	return ret;
}
