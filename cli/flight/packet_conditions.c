/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that match a 'packet:' condition.
 *
 * Each condition has a session of its own in the application, with its filter and the least buffer:
 * the recording is neither filtered nor read. A hook reads the time once for all sessions, so a
 * packet has the same time in both. Where more packets match than the buffer holds until the next
 * look, the newest are not noticed; the first one is what counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/which_app.h"
#include "flight.h"
#include "conditions.h"
#include "event_packet.h"
#include "packet_conditions.h"

#define RUNS_MAX   64
#define ROUNDS_MAX 64 /* rounds of runs in one look */

struct packet_condition {
	const struct trigger *trigger;
	struct ringtap_capture *cap;
	struct ringtap_packets *walk;
	bool over;
};

/* ---- setting up */

/* Ethernet ports have the trigger's filter; others are compiled again, and the caller frees them.
 */
static int set_filters(const struct trigger *t, struct ringtap_target *ports, unsigned count,
	struct filter *compiled)
{
	char err[512] = "not enough memory";

	for (unsigned i = 0; i < count; i++) {
		const struct filter *f = ports[i].linktype ? &compiled[i] : &t->filter;

		if (ports[i].linktype &&
			filter_compile_inner(&compiled[i], t->inner, t->expression,
				RINGTAP_TAGS_AS_IS, ports[i].linktype, err, sizeof(err)))
			return message_fail(-EINVAL,
				"flight: --on '%s', for ports without Ethernet headers: %s; "
				"see pcap-filter(7)",
				t->text, err);
		ports[i].filter = f->insns;
		ports[i].filter_len = f->len;
	}
	return 0;
}

/* The ports of the recording, with another filter. */
static int attach_target(struct packet_condition *l, const struct target *t)
{
	struct ringtap_target ports[CAPTURE_IFACES_MAX];
	struct ringtap_capture_options o = {.size = sizeof(o), .buffer_size = BUFFER_MIN};
	struct filter filters[CAPTURE_IFACES_MAX] = {0};
	int ret;

	memcpy(ports, t->ports, t->port_count * sizeof(*ports));
	ret = set_filters(l->trigger, ports, t->port_count, filters);
	if (!ret && (ret = ringtap_capture_attach(l->cap, t->dir, ports, t->port_count, &o)))
		print_not_attached("flight", t->name, ret, ringtap_capture_error(l->cap));
	for (unsigned i = 0; i < t->port_count; i++)
		filter_free(&filters[i]);
	return t->implied ? 0 : ret; /* a secondary process may have ended by now */
}

static int attach(struct flight *f, struct packet_condition *l)
{
	int ret = ringtap_capture_create(&l->cap, NULL);

	if (!ret)
		ret = ringtap_packets_create(&l->walk);
	if (ret)
		return message_fail(ret, "flight: starting: %s", strerror(-ret));
	for (unsigned i = 0; i < f->targets.count && !ret; i++)
		ret = attach_target(l, &f->targets.list[i]);
	return ret;
}

int packet_conditions_attach(struct flight *f)
{
	int ret = 0;

	f->packet_conditions = calloc(f->cfg->trigger_count, sizeof(*f->packet_conditions));
	if (!f->packet_conditions)
		return -ENOMEM;
	for (unsigned i = 0; i < f->cfg->trigger_count && !ret; i++) {
		const struct trigger *t = &f->cfg->triggers[i];
		struct packet_condition *l = &f->packet_conditions[f->packet_condition_count];

		if (t->kind != TRIGGER_PACKET)
			continue;
		f->packet_condition_count++;
		l->trigger = t;
		ret = attach(f, l);
	}
	return ret;
}

/* A port, queue and direction has a limited number of sessions. */
static int start(struct packet_condition *l)
{
	struct ringtap_stats s = {.size = sizeof(s)};
	int ret = ringtap_capture_start(l->cap);

	if (ret == -ECONNRESET) /* the recording finds out that the application has ended */
		return 0;
	if (ret && ret != -EBUSY)
		return message_fail(ret, "flight: --on '%s': %s", l->trigger->text,
			ringtap_capture_error(l->cap));
	if (!ret && (ringtap_capture_stats(l->cap, &s) || !s.queues_refused))
		return 0;
	return message_fail(-EBUSY,
		"flight: --on '%s': too many recordings of the same ports; end one, or give "
		"fewer such conditions",
		l->trigger->text);
}

int packet_conditions_start(struct flight *f)
{
	int ret = 0;

	for (unsigned i = 0; i < f->packet_condition_count && !ret; i++)
		ret = start(&f->packet_conditions[i]);
	return ret;
}

void packet_conditions_close(struct flight *f)
{
	for (unsigned i = 0; i < f->packet_condition_count; i++) {
		ringtap_packets_free(f->packet_conditions[i].walk);
		ringtap_capture_close(f->packet_conditions[i].cap);
	}
	free(f->packet_conditions);
	f->packet_conditions = NULL;
	f->packet_condition_count = 0;
}

/* ---- looking */

/* The first packet of a run. */
static void describe(struct packet_condition *l, const struct ringtap_run *run, struct event *e)
{
	const struct ringtap_packet *p;

	*e = (struct event){.from_ns = run->first_ns, .to_ns = run->first_ns};
	ringtap_packets_start(l->walk, run);
	ringtap_packets_fields(l->walk, RINGTAP_FIELDS_ALL);
	p = ringtap_packet_next(l->walk);
	if (p)
		event_set_packet(e, l->cap, p);
}

/* Takes all that is there. Returns the number of packets; the first becomes e. */
static uint64_t take(struct packet_condition *l, struct event *e)
{
	struct ringtap_run runs[RUNS_MAX];
	uint64_t packets = 0;

	for (unsigned round = 0; round < ROUNDS_MAX && !l->over; round++) {
		int n = ringtap_capture_next(l->cap, runs, RUNS_MAX, 0);

		if (!n)
			break;
		l->over = n < 0;
		if (n < 0 && n != -EPIPE)
			message_print("flight: --on '%s': %s; it is not met any more",
				l->trigger->text, ringtap_capture_error(l->cap));
		if (n > 0 && !packets)
			describe(l, &runs[0], e);
		for (int i = 0; i < n; i++)
			packets += runs[i].packets;
		if (n > 0)
			ringtap_capture_release(l->cap);
	}
	return packets;
}

void packet_conditions_check(struct flight *f)
{
	for (unsigned i = 0; i < f->packet_condition_count; i++) {
		struct packet_condition *l = &f->packet_conditions[i];
		struct event e;
		uint64_t packets = take(l, &e);

		if (!packets)
			continue;
		condition_met(f, l->trigger, &e);
		flight_state(f, l->trigger)->suppressed += packets - 1;
	}
}
