/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "dropped.h"
#include "target/counts.h"
#include "target/which_app.h"

#define RUNS_MAX    64
#define BUFFER_SIZE (16u << 20)
#define CLOCK_NS    10000000 /* the clock is slewed between two conversions of a time */

static int attach(struct dropped *d, const struct flows_request *r)
{
	/* All ports: a packet of one may be offered to any other. */
	const struct ringtap_target all = {.queue = -1,
		.directions = RINGTAP_RX | RINGTAP_TX,
		.snaplen = d->s->snaplen,
		.filter = r->filter.insns,
		.filter_len = r->filter.len};
	const struct ringtap_capture_options o = {
		.size = sizeof(o), .buffer_size = BUFFER_SIZE, .fates = true};
	int ret = ringtap_capture_attach(d->cap, d->s->app.dir, &all, 1, &o);

	return ret ? ret : ringtap_capture_start(d->cap);
}

int dropped_begin(struct dropped *d, const struct fates_session *s, const struct flows_request *r)
{
	int ret = ringtap_capture_create(&d->cap, NULL);

	d->s = s;
	if (!ret)
		ret = ringtap_packets_create(&d->walk);
	if (ret)
		return message_fail(ret, "%s: starting: %s", s->command, strerror(-ret));
	ringtap_packets_fields(d->walk, RINGTAP_FIELDS_ALL);
	ret = attach(d, r);
	if (ret)
		print_not_attached(s->command, s->app.name, ret, ringtap_capture_error(d->cap));
	return ret;
}

void dropped_free(struct dropped *d)
{
	ringtap_packets_free(d->walk);
	ringtap_capture_close(d->cap);
}

/* The port is among the requested ones, and the packet came while the ledger counted. */
static bool counts(const struct dropped *d, const struct ledger *t, uint32_t interface, uint64_t ns,
	uint16_t *linktype)
{
	struct ringtap_interface i = {.size = sizeof(i)};
	bool included = !d->s->app.port_count;

	if (ringtap_capture_interface(d->cap, interface, &i))
		return false;
	*linktype = i.linktype;
	for (unsigned n = 0; n < d->s->app.port_count && !included; n++)
		included = target_port_matches(i.name, i.device, i.port_id, d->s->app.ports[n]);
	return included && ns + CLOCK_NS >= t->all.first_ns && ns <= t->all.last_ns + CLOCK_NS;
}

static void count(
	struct dropped *d, struct ledger *t, const struct ringtap_packet *p, uint64_t received_ns)
{
	uint16_t linktype;

	if (!counts(d, t, p->interface, received_ns, &linktype))
		return;
	d->reasons[p->reason]++;
	ledger_not_offered(t, p, linktype);
}

static void take_run(struct dropped *d, struct ledger *t, const struct ringtap_run *run)
{
	const struct ringtap_packet *p;

	ringtap_packets_start(d->walk, run);
	while ((p = ringtap_packet_next(d->walk)))
		count(d, t, p, p->id);
}

static int take(struct dropped *d, struct ledger *t, int timeout_ms)
{
	struct ringtap_run runs[RUNS_MAX];
	int n = ringtap_capture_next(d->cap, runs, RUNS_MAX, timeout_ms);

	for (int i = 0; i < n; i++)
		take_run(d, t, &runs[i]);
	ringtap_capture_release(d->cap);
	return n;
}

/* No packet was received into these mbufs since. */
static void take_free(struct dropped *d, struct ledger *t)
{
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;
	struct ringtap_fates *fates;

	if (ringtap_fates_read(d->cap, 0, &fates))
		return;
	ringtap_fates_free(fates);
	if (ringtap_open_packets_create(&it, d->cap, 0))
		return;
	while ((p = ringtap_open_packets_next(it))) {
		const struct ringtap_packet one = {.data = p->data,
			.caplen = p->caplen,
			.length = p->length,
			.interface = p->interface,
			.queue = p->queue,
			.reason = p->reason,
			.direction = RINGTAP_RX};

		if (p->fate == RINGTAP_FATE_NOT_OFFERED)
			count(d, t, &one, p->ns);
	}
	ringtap_open_packets_free(it);
}

void dropped_take(struct dropped *d, struct ledger *t, bool final)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};

	if (!d->cap)
		return;
	if (final) {
		(void)ringtap_capture_stop(d->cap); /* the next call reports it */
		while (take(d, t, -1) >= 0)
			;
		take_free(d, t);
	} else {
		while (take(d, t, 0) > 0)
			;
	}
	d->lost = ringtap_capture_stats(d->cap, &stats) ? 0 : counts_lost(&stats.total);
}
