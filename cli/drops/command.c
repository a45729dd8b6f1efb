/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/commands.h"
#include "drops.h"
#include "dropped_file.h"
#include "packet/inner.h"
#include "target/capture_config.h"

#define SNAPLEN_DEFAULT 128

#define TO(field) OPTION_TO(struct drops, field)

/* clang-format off: it would break the texts at odd places */
static const struct option_def options[] = {
	{.kind = OPTION_HEADING, .help = "What to show"},
	FATES_OPTION_ATTACH,
	{TO(expression), OPTION_TEXT, 'f', "filter", "FILTER", NULL, 0, 0,
		"Show and write only packets that match this libpcap expression, see "
		"pcap-filter(7), by the bytes of -s. Counts of queues are those of all packets"},
	TAGS_OPTION(struct drops, tags),
	INNER_OPTION(struct drops, inner),
	{TO(view.s.snaplen), OPTION_BYTES, 's', "snapshot-length", "BYTES", NULL, 64, SAMPLE_BYTES,
		"Keep BYTES of each packet, rounded up to 64 (default: 128)"},
	FATES_OPTION_BUFFER,
	FATES_OPTIONS_WHEN,
	{TO(path), OPTION_FILE, 'w', "write", "FILE", NULL, 0, 0,
		"Write the packets to this pcapng file: with the time of their reception, and "
		"their age in a comment"},
	FATES_OPTION_JSON,
};
/* clang-format on */

static bool matches(const struct drops *d, const struct sample *p)
{
	struct bpf_program prog = {
		.bf_len = d->filter.len, .bf_insns = (struct bpf_insn *)(void *)d->filter.insns};
	struct pcap_pkthdr h = {.caplen = p->caplen, .len = p->length};

	return !d->filter.insns || pcap_offline_filter(&prog, &h, p->data);
}

static void add(struct drops *d, const struct sample *p, bool at_end)
{
	if (!matches(d, p))
		return;
	groups_add(&d->groups, p);
	d->at_end += at_end;
	if (d->file && !d->error)
		d->error = dropped_put(d->file, &d->view.s, p, at_end);
}

/* Its time is that of the notice, its id that of the reception. */
static void take(void *ctx, const struct ringtap_packet *p)
{
	struct drops *d = ctx;
	const struct sample s = {.data = p->data,
		.caplen = p->caplen,
		.length = p->length,
		.interface = p->interface,
		.queue = p->queue,
		.reason = p->reason,
		.ns = p->id,
		.age_ns = p->ns > p->id ? p->ns - p->id : 0};

	d->taken++;
	add(d, &s, false);
}

/* No packet was received into these mbufs since: no hook has noticed it. */
static int take_free(struct drops *d)
{
	struct fates_session *s = &d->view.s;
	const struct ringtap_open_packet *p;
	struct ringtap_open_packets *it;
	int ret = ringtap_open_packets_create(&it, s->cap, 0);

	while (!ret && (p = ringtap_open_packets_next(it))) {
		const struct sample one = sample_of_open(p, s->fates->taken_ns);

		if (p->fate == RINGTAP_FATE_NOT_OFFERED && fates_includes(s, p->interface))
			add(d, &one, true);
	}
	if (!ret)
		ringtap_open_packets_free(it);
	return ret;
}

/* Its counters begin with the capture. */
static void begun(void *ctx)
{
	struct drops *d = ctx;
	const struct ringtap_app_info *info = &d->view.s.info;

	counted_begin(&d->counted, info->program, (pid_t)info->host_pid, (pid_t)info->pid);
}

static int reading(void *ctx, bool final)
{
	struct drops *d = ctx;
	struct drops_sum sum;

	d->final = final;
	if (d->file && !d->error)
		d->error = dropped_flush(d->file);
	if (!final) {
		if (!d->view.once)
			counted_read(&d->counted);
		return d->error;
	}
	drops_add_up(d, &sum);
	counted_end(&d->counted, sum.not_offered);
	groups_unmark(&d->groups);
	return take_free(d);
}

static void mark(void *ctx)
{
	groups_mark(&((struct drops *)ctx)->groups);
}

static void add_known(double *sum, double v)
{
	if (!isnan(v))
		*sum = isnan(*sum) ? v : *sum + v;
}

static void add_drivers(const struct drops *d, struct drops_sum *out)
{
	const struct fates_session *s = &d->view.s;

	out->missed = out->no_mbuf = out->refused = NAN;
	for (uint32_t i = 0; i < ringtap_capture_interface_count(s->cap); i++) {
		struct driver_counts c = drops_driver(d, i);

		add_known(&out->refused, c.unsent);
		if (!fates_includes(s, i))
			continue;
		add_known(&out->missed, c.imissed);
		add_known(&out->no_mbuf, c.rx_nombuf);
	}
}

void drops_add_up(const struct drops *d, struct drops_sum *out)
{
	const struct fates_session *s = &d->view.s;

	*out = (struct drops_sum){0};
	add_drivers(d, out);
	for (uint32_t i = 0; i < s->fates->queue_count; i++) {
		const struct ringtap_fate_queue *q = ringtap_fates_queue(s->fates, i);

		if (!fates_includes(s, q->interface))
			continue;
		out->received += q->received;
		out->offered += q->offered;
		out->not_offered += q->not_offered + q->free;
		out->open += q->open;
		out->unknown += q->unknown;
		out->inferred += q->inferred;
		out->unseen += q->unseen;
		out->stopped += q->stopped;
	}
}

bool drops_is_switch(const struct drops *d)
{
	static const char name[] = "ovs-vswitchd"; /* Debian's is called ovs-vswitchd-dpdk */

	return !strncmp(d->view.s.info.program, name, sizeof(name) - 1);
}

static int begin(struct drops *d)
{
	char err[256];

	if (filter_compile_inner(&d->filter, d->inner, d->expression, d->tags,
		    RINGTAP_LINKTYPE_ETHERNET, err, sizeof(err))) {
		message_print("drops: filter '%s': %s; see pcap-filter(7)", d->expression, err);
		return STATUS_USAGE;
	}
	if (d->path && !strcmp(d->path, "-")) {
		message_print("drops: -w -: standard output has the tables; give a file");
		return STATUS_USAGE;
	}
	if (groups_init(&d->groups) || (d->path && dropped_open(&d->file, d->path)))
		return STATUS_FAILED;
	return STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct drops d = {.view = {.s = {.command = "drops",
					   .take = take,
					   .ctx = &d,
					   .snaplen = SNAPLEN_DEFAULT},
				  .begun = begun,
				  .reading = reading,
				  .text = drops_text,
				  .document = drops_json,
				  .mark = mark,
				  .ctx = &d}};
	int ret = options_parse(self, argc, argv, &d);

	if (ret <= 0)
		return ret ? STATUS_USAGE : STATUS_OK;
	ret = begin(&d);
	if (ret == STATUS_OK)
		ret = fates_run(&d.view);
	if (d.file && dropped_close(d.file, &d.view.s))
		ret = STATUS_FAILED;
	counted_free(&d.counted);
	fates_free(&d.view.s);
	groups_free(&d.groups);
	filter_free(&d.filter);
	return ret;
}

const struct command cmd_drops = {
	.name = "drops",
	.summary = "show the packets that an application receives and does not send",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = "[APP[:PORT]]...",
	.listed = LIST_TARGETS,
	.operand = fates_operand,
	.run = run,
};
