/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report.h"
#include "base/util.h"

double stage_rate(const struct role *r, unsigned stage)
{
	const struct generator *g = r->generator;
	uint64_t ticks = g->sent[stage].last - g->sent[stage].start;
	struct counters c;
	uint64_t n;

	role_read(r, stage, &c);
	n = c.tx_packets;

	return ticks && n > 1 ? (double)(n - 1) * (double)run.hz / (double)ticks : 0;
}

void sink_total(const struct sink *s, struct sequence *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < STAMP_STREAMS; i++) {
		const struct sequence *q = s->streams[i];

		if (!q)
			continue;
		sum->next += q->next;
		sum->received += q->received;
		sum->unique += q->unique;
		sum->duplicated += q->duplicated;
		sum->reordered += q->reordered;
		sum->stale += q->stale;
		sum->extent = q->extent > sum->extent ? q->extent : sum->extent;
	}
}

void report_second(const struct app *a, const struct second *s)
{
	FILE *f = a->config->json ? stderr : stdout;
	const struct counters *c = &s->counters;
	char name[ROLE_TEXT], rx[FORMAT_LEN], tx[FORMAT_LEN];

	text_wrapf(f, 4,
		"%6.1f s  %s: rx %spps, %.1f per burst, %.1f per non-zero burst (%" PRIu64
		" of %" PRIu64 "); tx %spps, dropped %" PRIu64,
		s->at, role_text(a->roles[s->role], name),
		format_si(rx, (double)c->rx_packets / s->seconds),
		ratio(c->rx_packets, rx_bursts(c)), ratio(c->rx_packets, c->rx_nonzero),
		c->rx_nonzero, rx_bursts(c), format_si(tx, (double)c->tx_packets / s->seconds),
		c->tx_dropped + c->tx_errors + c->tx_refused + c->tx_nombuf);
	fflush(f);
}

static void text_histogram(const char *what, const struct histogram *h)
{
	const double p50 = histogram_percentile(h, 50), p99 = histogram_percentile(h, 99);

	if (!h->count)
		return;
	text_wrapf(stdout, 4,
		"  %s: mean %.0f, p50 %.0f, p90 %.0f, p99 %.0f, max %" PRIu64
		" cycles; mean %.0f, p50 %.0f, p99 %.0f, max %.0f ns; of %" PRIu64,
		what, histogram_mean(h), p50, histogram_percentile(h, 90), p99, h->max,
		ns_of(histogram_mean(h)), ns_of(p50), ns_of(p99), ns_of((double)h->max), h->count);
}

static void text_sequence(const struct sequence *q)
{
	text_wrapf(stdout, 4,
		"  sequence: %" PRIu64 " received, %" PRIu64 " lost, %" PRIu64
		" duplicated, %" PRIu64 " reordered, %" PRIu64 " stale",
		q->received, sequence_lost(q), q->duplicated, q->reordered, q->stale);
}

static void text_generator(const struct role *r)
{
	const struct generator *g = r->generator;

	for (unsigned i = 0; i < r->config->stage_count; i++) {
		char requested[FORMAT_LEN];
		uint64_t rate = r->config->stages[i].rate;

		text_wrapf(stdout, 4,
			"  stage %u: %s%s, %.1f pps sent; packets: %" PRIu64 " refused, %" PRIu64
			" without buffer, %" PRIu64 " not reached",
			i,
			r->config->timing        ? "times of the file"
			: rate == RATE_UNLIMITED ? "max"
						 : format_count(requested, rate),
			r->config->timing ? "" : " pps requested", stage_rate(r, i),
			r->counters[i].tx_refused, r->counters[i].tx_nombuf,
			r->counters[i].tx_expired);
	}
	text_histogram("later than in the file", &g->late);
	if (!r->from)
		return;
	text_sequence(&g->replies);
	text_histogram("round trip", &g->rtt);
}

static void text_role(struct app *a, struct role *r)
{
	char name[ROLE_TEXT], rx[FORMAT_LEN], tx[FORMAT_LEN];
	struct counters c;

	role_total(r, &c);
	text_wrapf(stdout, 4, "%s (CPU %d)", role_text(r, name), r->cpu);
	if (r->from)
		text_wrapf(stdout, 4,
			"  received %s in %" PRIu64 " of %" PRIu64
			" bursts: %.2f per burst, %.2f per non-zero burst",
			format_count(rx, c.rx_packets), c.rx_nonzero, rx_bursts(&c),
			ratio(c.rx_packets, rx_bursts(&c)), ratio(c.rx_packets, c.rx_nonzero));
	if (r->to)
		text_wrapf(stdout, 4,
			"  sent %s, dropped %" PRIu64 ", retries %" PRIu64
			", unsent at the end %" PRIu64,
			format_count(tx, c.tx_packets), c.tx_dropped, c.tx_retried, c.tx_unsent);
	if (c.tx_errors)
		text_wrapf(stdout, 4, "  rejected by the kernel %" PRIu64 ": %s", c.tx_errors,
			strerror(r->to->error));
	if (r->generator)
		text_generator(r);
	if (r->latency) {
		text_histogram("from receive to send", &r->latency->rx_to_tx);
		text_histogram("time per packet", &r->latency->per_packet);
	}
	if (r->sink) {
		struct sequence sum;

		sink_total(r->sink, &sum);
		text_sequence(&sum);
		if (c.rx_ticks)
			printf("  time to receive and free %.1f ns per packet\n",
				ns_of(ratio(c.rx_ticks, c.rx_packets)));
		if (r->sink->unstamped)
			printf("  packets without a stamp %" PRIu64 "\n", r->sink->unstamped);
	}
}

static void text_ports(const struct app *a)
{
	for (unsigned i = 0; i < a->ports.count; i++) {
		struct rte_eth_stats s;
		char name[RTE_ETH_NAME_MAX_LEN] = "";

		if (rte_eth_stats_get(a->ports.ids[i], &s))
			continue;
		rte_eth_dev_get_name_by_port(a->ports.ids[i], name);
		text_wrapf(stdout, 4,
			"port %u %s: in %" PRIu64 ", out %" PRIu64 ", missed %" PRIu64
			", without buffer %" PRIu64 ", errors %" PRIu64 " in, %" PRIu64 " out",
			a->ports.ids[i], name, s.ipackets, s.opackets, s.imissed, s.rx_nombuf,
			s.ierrors, s.oerrors);
	}
}

/* Each receiving role has one socket. */
static void text_sockets(const struct app *a)
{
	for (unsigned i = 0; a->config->plane != PLANE_DPDK && i < a->role_count; i++)
		if (a->roles[i]->from)
			text_wrapf(stdout, 4, "socket on %s: missed %" PRIu64,
				a->roles[i]->from->name,
				plane_ops(a->config->plane)->missed(a->roles[i]->from));
}

static void text_memory(const struct app *a)
{
	const struct memory *m = &a->ports.memory;
	char bytes[FORMAT_LEN], page[FORMAT_LEN], huge[FORMAT_LEN], thp[FORMAT_LEN];

	if (a->config->plane != PLANE_DPDK)
		return;
	text_wrapf(stdout, 4,
		"memory %s, order %s: %u buffers, %s in pages of %s (huge: %s, transparent huge: "
		"%s)",
		memory_names[m->kind], order_names[m->order], a->config->pool_size,
		format_bytes(bytes, (double)m->bytes), format_bytes(page, (double)m->page_size),
		format_bytes(huge, 1024.0 * (double)m->smaps.hugetlb_kb),
		format_bytes(thp, 1024.0 * (double)m->smaps.anon_huge_kb));
}

int report_text(struct app *a)
{
	printf("%.3f s, end of the run: %s\n", a->elapsed, end_names[a->end]);
	for (unsigned i = 0; i < a->role_count; i++)
		text_role(a, a->roles[i]);
	text_ports(a);
	text_sockets(a);
	text_memory(a);
	return fflush(stdout) || ferror(stdout) ? -1 : 0;
}

int report_samples(struct app *a)
{
	FILE *f = a->config->samples ? fopen(a->config->samples, "we") : NULL;
	int bad;

	if (!a->config->samples)
		return 0;
	if (f)
		fprintf(f, "role,time_ns,stage,va,iova\n");
	for (unsigned i = 0; f && i < a->role_count; i++) {
		const struct samples *s = a->roles[i]->samples;

		for (uint64_t k = 0; s && k < s->count; k++)
			fprintf(f, "%u,%.0f,%u,%" PRIu64 ",%" PRIu64 "\n", i,
				ns_of((double)(int64_t)(s->list[k].tsc - run.start_tsc)),
				s->list[k].stage, s->list[k].va, s->list[k].iova);
	}
	bad = !f || ferror(f);
	if (f && fclose(f))
		bad = 1;
	if (bad)
		message_print("--samples %s: cannot write the file; check the folder and the disk",
			a->config->samples);
	return bad ? -1 : 0;
}
