/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/signals.h"
#include "base/util.h"
#include "target/which_app.h"
#include "session.h"

#define RUNS_MAX  64
#define SETTLE_NS NS_PER_S /* at most */

static int check_port(const struct fates_session *s)
{
	struct ringtap_list *list;
	int ret = 0;

	if (!s->app.port_count)
		return 0;
	list = target_ports(s->app.dir);
	if (list && !target_has_port(list, s->app.ports[0])) {
		print_no_port(s->command, s->app.name, target_pid(s->app.apps, s->app.dir),
			s->app.ports[0], list);
		ret = -ENODEV;
	}
	ringtap_list_free(list);
	return ret;
}

static int attach(struct fates_session *s)
{
	/* All ports: a packet of one may be offered to any other. */
	const struct ringtap_target all = {
		.queue = -1, .directions = RINGTAP_RX | RINGTAP_TX, .snaplen = s->snaplen};
	const struct ringtap_capture_options o = {
		.size = sizeof(o), .buffer_size = s->buffer_size, .fates = true};
	int ret = ringtap_capture_attach(s->cap, s->app.dir, &all, 1, &o);

	if (ret)
		print_not_attached(s->command, s->app.name, ret, ringtap_capture_error(s->cap));
	return ret;
}

static int create(struct fates_session *s)
{
	int ret = ringtap_capture_create(&s->cap, NULL);

	if (!ret)
		ret = ringtap_packets_create(&s->walk);
	if (ret)
		message_print("%s: starting: %s", s->command, strerror(-ret));
	else
		ringtap_packets_fields(s->walk, RINGTAP_FIELDS_ALL);
	return ret;
}

/* Statistics would cost the application something for each burst. */
static void name_only(struct fates_session *s)
{
	struct ringtap_conn *conn;

	s->info.size = sizeof(s->info);
	if (!ringtap_conn_open(&conn, s->app.dir, NULL, NULL, 0)) {
		(void)ringtap_conn_app(conn, &s->info);
		ringtap_conn_close(conn);
	}
}

/* Statistics are an addition: without them their columns are empty. */
static void watch(struct fates_session *s)
{
	const struct ringtap_monitor_options opts = {
		.size = sizeof(opts), .collectors = RINGTAP_POLLS};

	if (ringtap_monitor_open(&s->mon, s->app.dir, &opts, NULL, 0))
		return;
	s->info.size = sizeof(s->info);
	if (ringtap_monitor_app(s->mon, &s->info))
		s->info = (struct ringtap_app_info){0};
}

int fates_begin(struct fates_session *s)
{
	int ret = one_app_resolve(&s->app, s->command, &s->words);

	if (ret)
		return ret == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	if (check_port(s) || create(s) || (s->attach ? s->attach(s) : attach(s)))
		return STATUS_FAILED;
	/* First: attaching to statistics takes long, and both count the same time. */
	if (s->attach)
		name_only(s);
	else
		watch(s);
	ret = ringtap_capture_start(s->cap);
	if (ret) {
		print_not_attached(s->command, s->app.name, ret, ringtap_capture_error(s->cap));
		return STATUS_FAILED;
	}
	if (s->mon)
		(void)ringtap_monitor_read(s->mon, &s->first);
	s->start_ns = now_ns(CLOCK_MONOTONIC);
	return STATUS_OK;
}

void fates_free(struct fates_session *s)
{
	ringtap_fates_free(s->fates);
	ringtap_packets_free(s->walk);
	ringtap_capture_close(s->cap);
	ringtap_snapshot_free(s->first);
	ringtap_snapshot_free(s->now);
	ringtap_monitor_close(s->mon);
	one_app_free(&s->app);
}

static int broken(struct fates_session *s, int error)
{
	const char *why = ringtap_capture_error(s->cap);

	s->over = true; /* there is nothing more to take */
	if (!s->command)
		return error;
	return message_fail(error, "%s: reading %s: %s; what came before is right", s->command,
		s->app.name, *why ? why : strerror(-error));
}

static int take_run(struct fates_session *s, const struct ringtap_run *run)
{
	const struct ringtap_packet *p;
	uint32_t last = RINGTAP_NO_INDEX;
	bool included = false;

	if (s->from) {
		struct ringtap_ring ring = {.size = sizeof(ring)};

		if (!ringtap_capture_ring(s->cap, run->ring, &ring))
			s->from(s->ctx, &ring);
	}
	ringtap_packets_start(s->walk, run);
	while ((p = ringtap_packet_next(s->walk))) {
		if (p->interface != last)
			included = s->attach || fates_includes(s, p->interface);
		last = p->interface;
		if (included)
			s->take(s->ctx, p);
	}
	return ringtap_packets_error(s->walk);
}

static void note_end(struct fates_session *s)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};

	s->ended = !ringtap_capture_stats(s->cap, &stats) && stats.apps_dead;
}

int fates_take(struct fates_session *s, int timeout_ms)
{
	struct ringtap_run runs[RUNS_MAX];
	int n = ringtap_capture_next(s->cap, runs, RUNS_MAX, timeout_ms), ret = 0;

	if (n == -EPIPE) {
		note_end(s);
		s->over = true;
		return 1;
	}
	for (int i = 0; i < n && !ret; i++)
		ret = take_run(s, &runs[i]);
	if (s->release)
		s->release(s->ctx);
	ringtap_capture_release(s->cap);
	return n < 0 || ret ? broken(s, n < 0 ? n : ret) : 0;
}

/* Until the probe has read the drivers of all ports once more: it does so twice a second. */
static void settle(struct fates_session *s)
{
	const uint64_t end_ns = now_ns(CLOCK_REALTIME), until = now_ns(CLOCK_MONOTONIC) + SETTLE_NS;
	bool read = !s->mon || !s->first || s->ended;

	while (!read && now_ns(CLOCK_MONOTONIC) < until && !stop_wait(SETTLE_NS / 20)) {
		struct ringtap_snapshot *now;

		if (ringtap_monitor_read(s->mon, &now))
			return;
		read = true;
		for (uint32_t p = 0; p < now->port_count; p++)
			read &= ringtap_snapshot_port(now, p)->gone ||
				ringtap_snapshot_port(now, p)->read_ns > end_ns;
		ringtap_snapshot_free(now);
	}
}

int fates_end(struct fates_session *s)
{
	int ret = s->over ? 1 : 0;

	if (!ret)
		(void)ringtap_capture_stop(s->cap); /* the next call reports it */
	while (!ret)
		ret = fates_take(s, -1);
	if (ret < 0)
		return ret;
	s->end_ns = now_ns(CLOCK_MONOTONIC);
	settle(s);
	return 0;
}

int fates_read(struct fates_session *s)
{
	struct ringtap_snapshot *now = NULL;
	int ret;

	if (s->attach)
		return 0;
	ringtap_fates_free(s->fates);
	ret = ringtap_fates_read(s->cap, 0, &s->fates);
	if (ret)
		return message_fail(ret, "%s: reading the fates of %s: %s", s->command, s->app.name,
			ret == -EBADMSG ? "the application has overwritten them" : strerror(-ret));
	if (s->mon && s->first)
		(void)ringtap_monitor_read(s->mon, &now);
	if (now) {
		ringtap_snapshot_free(s->now);
		s->now = now;
	}
	return 0;
}

/* ---- ports ---- */

static bool port_info(
	const struct fates_session *s, uint32_t interface, struct ringtap_interface *info)
{
	*info = (struct ringtap_interface){.size = sizeof(*info)};
	return !ringtap_capture_interface(s->cap, interface, info);
}

bool fates_includes(const struct fates_session *s, uint32_t interface)
{
	struct ringtap_interface i;

	if (!s->app.port_count)
		return true;
	return port_info(s, interface, &i) &&
	       target_port_matches(i.name, i.device, i.port_id, s->app.ports[0]);
}

char *fates_port(const struct fates_session *s, uint32_t interface, char buf[RINGTAP_NAME_LEN])
{
	struct ringtap_interface i;

	if (!port_info(s, interface, &i))
		strcpy(i.name, "?");
	memcpy(buf, i.name, RINGTAP_NAME_LEN);
	return buf;
}

json_t *fates_port_json(const struct fates_session *s, uint32_t interface)
{
	struct ringtap_interface i;

	return port_info(s, interface, &i) ? json_port(i.port_id, i.name) : json_null();
}

uint32_t fates_stats_port(const struct fates_session *s, uint32_t interface)
{
	struct ringtap_interface i;

	if (!s->now || !port_info(s, interface, &i))
		return RINGTAP_NO_INDEX;
	for (uint32_t p = 0; p < s->now->port_count; p++) {
		const struct ringtap_port_stats *port = ringtap_snapshot_port(s->now, p);

		if (!port->gone && port->port_id == i.port_id && !strcmp(port->device, i.device))
			return p;
	}
	return RINGTAP_NO_INDEX;
}

bool fates_span(const struct fates_session *s, struct span *out)
{
	if (!s->now)
		return false;
	*out = (struct span){.from = s->first,
		.to = s->now,
		.seconds = (double)(s->now->taken_mono_ns - s->first->taken_mono_ns) / NS_PER_S,
		.tsc_hz = (double)s->first->tsc_hz};
	return true;
}

uint64_t fates_descriptors(const struct fates_session *s)
{
	uint64_t sum = 0;

	for (uint32_t p = 0; s->now && p < s->now->port_count; p++) {
		const struct ringtap_port_stats *port = ringtap_snapshot_port(s->now, p);

		if (!port->gone && one_app_includes(&s->app, s->now, p))
			sum += (uint64_t)port->rx_queues * port->rx_descriptors;
	}
	return sum;
}

/* Sums the losses of the taps of a direction. */
static uint64_t lost_of(const struct fates_session *s, unsigned direction)
{
	struct ringtap_tap tap = {.size = sizeof(tap)};
	uint64_t lost = 0;

	for (unsigned i = 0; i < ringtap_capture_tap_count(s->cap); i++) {
		if (ringtap_capture_tap(s->cap, i, &tap) || tap.direction != direction)
			continue;
		if (direction == RINGTAP_RX && !fates_includes(s, tap.interface))
			continue;
		for (int r = 0; r < RINGTAP_LOST_MAX; r++)
			lost += tap.counts.lost[r];
	}
	return lost;
}

uint64_t fates_lost(const struct fates_session *s)
{
	return lost_of(s, RINGTAP_RX);
}

uint64_t fates_sent_unseen(const struct fates_session *s)
{
	return lost_of(s, RINGTAP_TX);
}

uint32_t fates_upper_port(const struct fates_session *s)
{
	struct ringtap_interface i;

	for (uint32_t n = 0; port_info(s, n, &i); n++)
		if (!strcmp(i.driver, "net_bonding") || !strcmp(i.driver, "net_failsafe"))
			return n;
	return RINGTAP_NO_INDEX;
}

uint64_t fates_queues_refused(const struct fates_session *s)
{
	struct ringtap_stats stats = {.size = sizeof(stats)};

	return ringtap_capture_stats(s->cap, &stats) ? 0 : stats.queues_refused;
}

double fates_seconds(const struct fates_session *s)
{
	return (double)((s->end_ns ?: now_ns(CLOCK_MONOTONIC)) - s->start_ns) / NS_PER_S;
}
