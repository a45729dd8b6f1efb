/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "events.h"

#define BUFFER_MOST (64u << 20)

/* ---- attaching */

static unsigned make_targets(const struct target *t, struct ringtap_target *out)
{
	unsigned n = 0;

	for (; n < t->port_count; n++) {
		out[n] = t->ports[n];
		out[n].queue = -1;
		out[n].directions = RINGTAP_RX | RINGTAP_TX;
		if (!out[n].port)
			return n + 1;
	}
	out[n] = (struct ringtap_target){.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX};
	return n + 1;
}

int fate_events_attach(struct ringtap_capture *cap, const char *command, const struct target *t,
	const struct ringtap_capture_options *packets)
{
	struct ringtap_target targets[CAPTURE_IFACES_MAX + 1];
	const uint64_t buffer = packets->buffer_size;
	const struct ringtap_capture_options o = {.size = sizeof(o),
		.buffer_size = buffer && buffer < BUFFER_MOST ? buffer : BUFFER_MOST,
		.timeout_ms = packets->timeout_ms,
		.fates = true,
		.fate_ids = true};
	unsigned count = make_targets(t, targets);
	int ret;

	if (count > CAPTURE_IFACES_MAX)
		return message_fail(-E2BIG,
			"%s: --fates: it needs a port more than the %d of -i; leave out one",
			command, CAPTURE_IFACES_MAX);
	ret = ringtap_capture_attach(cap, t->dir, targets, count, &o);
	if (ret)
		message_print(
			"%s: --fates of '%s': %s", command, t->name, ringtap_capture_error(cap));
	return ret;
}

bool fate_same_port(const struct ringtap_interface *a, const struct ringtap_interface *b)
{
	return a->app == b->app && !strcmp(a->device, b->device) && !strcmp(a->driver, b->driver);
}

/* ---- entries */

static const struct in_file {
	uint8_t fate, why;
} in_file[] = {[RINGTAP_FATE_NONE] = {RT_FATES_OPEN, 0},
	[RINGTAP_FATE_NOT_OFFERED] = {RT_FATES_NOT_OFFERED, 0},
	[RINGTAP_FATE_UNKNOWN] = {RT_FATES_UNKNOWN, RT_FATES_WHY_OTHER},
	[RINGTAP_FATE_INFERRED] = {RT_FATES_INFERRED, 0},
	[RINGTAP_FATE_UNSEEN] = {RT_FATES_UNKNOWN, RT_FATES_WHY_UNSEEN},
	[RINGTAP_FATE_STOPPED] = {RT_FATES_UNKNOWN, RT_FATES_WHY_STOPPED}};

/* Unknown numbers, which a later probe may have, are not said of a packet. */
static const struct in_file *find_in_file(unsigned fate)
{
	return &in_file[fate < sizeof(in_file) / sizeof(in_file[0]) ? fate : RINGTAP_FATE_UNKNOWN];
}

struct rt_fates_packet fate_entry(
	uint64_t id, uint64_t ns, uint32_t interface, uint32_t queue, unsigned fate, uint8_t reason)
{
	return (struct rt_fates_packet){.id = id,
		.ns_high = (uint32_t)(ns >> 32),
		.ns_low = (uint32_t)ns,
		.interface = interface,
		.queue = (uint16_t)queue,
		.fate = find_in_file(fate)->fate,
		.why = fate == RINGTAP_FATE_NOT_OFFERED ? reason : find_in_file(fate)->why};
}

uint32_t fate_new_texts(struct fate_texts *t, const struct ringtap_capture *cap,
	const struct rt_fates_packet *e, size_t n, struct rt_fates_reason *out)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t source = (uint8_t)(e[i].id >> RT_FATES_SOURCE_SHIFT), why = e[i].why;
		uint64_t *known = &t->known[source][why / 64];
		char text[RINGTAP_NAME_LEN] = "";

		if (e[i].fate != RT_FATES_NOT_OFFERED || !why || *known >> why % 64 & 1)
			continue;
		*known |= 1ull << why % 64;
		(void)ringtap_capture_reason(cap, source, why, text);
		out[count] = (struct rt_fates_reason){.source = source, .number = why};
		memcpy(out[count].text, text, sizeof(out[count].text) - 1);
		count++;
	}
	return count;
}

/* Events of a queue that were lost: they are the packets of its tap. */
static uint64_t lost_of(const struct ringtap_capture *cap, uint32_t interface, uint32_t queue)
{
	unsigned count = ringtap_capture_tap_count(cap);
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++) {
		struct ringtap_tap t = {.size = sizeof(t)};

		if (ringtap_capture_tap(cap, i, &t) || t.interface != interface ||
			t.queue != queue || t.direction != RINGTAP_RX)
			continue;
		for (unsigned k = 0; k < RINGTAP_LOST_MAX; k++)
			sum += t.counts.lost[k];
		break;
	}
	return sum;
}

struct rt_fates_queue fate_queue_entry(
	const struct ringtap_capture *cap, const struct ringtap_fate_queue *q, uint32_t interface)
{
	return (struct rt_fates_queue){.interface = interface,
		.queue = q->queue,
		.received = q->received,
		.offered = q->offered,
		.not_offered = q->not_offered + q->free,
		.open = q->open,
		.unknown = q->unknown,
		.inferred = q->inferred,
		.lost = lost_of(cap, q->interface, q->queue)};
}
