/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/now.h"
#include "common/record.h"
#include "common/segment.h"
#include "fake_reader.h"

struct fake fake;

/* An EPB with epb_flags, as the probe writes it; with fates also with epb_packetid. */
#define OPTIONS_LEN (fake.fates ? 24u : 12u)

struct ringtap_apps {
	unsigned count;
};

struct ringtap_capture {
	uint8_t **buffers;
	unsigned next_run, handed;
	bool stopped;
	uint64_t counter;
	uint64_t captured[8]; /* by file-wide id */
	uint32_t ids[4][2];
};

uint32_t fake_block_len(uint32_t len)
{
	return RT_EPB_MIN + ((len + 3) & ~3u) + OPTIONS_LEN;
}

static unsigned if_count(const struct ringtap_capture *cap)
{
	if (fake.late_interface && cap->next_run <= fake.late_interface)
		return fake.apps;
	return 2 * fake.apps;
}

/* With a late interface: first p0 of each application, then p1 of each. */
static unsigned file_wide(uint32_t app, uint32_t interface)
{
	return fake.late_interface ? interface * fake.apps + app : 2 * app + interface;
}

static void put_packet(uint8_t *at, const struct fake_run *r, uint64_t k)
{
	uint64_t ns = FAKE_START_NS + k;
	uint32_t total = fake_block_len(r->len);
	const struct rt_epb epb = {.type = RT_EPB_TYPE,
		.total_len = total,
		.if_index = fake.renumber ? r->interface : file_wide(r->app, r->interface),
		.ts_high = (uint32_t)(ns >> 32),
		.ts_low = (uint32_t)ns,
		.cap_len = r->len,
		.orig_len = r->len + 4};
	const uint64_t id = ns - FAKE_AGE_NS;
	const uint32_t flags[2] = {RT_OPTION_FLAGS | 4u << 16,
		fake.burst && k / fake.burst % 2 ? RINGTAP_TX : RINGTAP_RX};
	const uint32_t packetid = RT_OPTION_PACKETID | 8u << 16;

	memset(at, 0, total);
	memcpy(at, &epb, sizeof(epb));
	if (fake.bytes)
		memcpy(at + sizeof(epb), fake.bytes, r->len);
	else
		memcpy(at + sizeof(epb), &k, sizeof(k));
	memcpy(at + total - 4 - OPTIONS_LEN, flags, sizeof(flags));
	if (fake.fates) {
		memcpy(at + total - 20, &packetid, sizeof(packetid));
		memcpy(at + total - 16, &id, sizeof(id));
	}
	memcpy(at + total - 4, &total, sizeof(total));
}

static struct ringtap_run make_run(struct ringtap_capture *cap, const struct fake_run *r)
{
	uint32_t block = fake_block_len(r->len);
	uint8_t *data = malloc((size_t)block * r->packets);

	for (unsigned i = 0; i < r->packets; i++)
		put_packet(data + (size_t)i * block, r, cap->counter++);
	cap->buffers = realloc(cap->buffers, (cap->handed + 1) * sizeof(*cap->buffers));
	cap->buffers[cap->handed++] = data;
	cap->captured[file_wide(r->app, r->interface)] += r->packets;
	for (uint32_t i = 0; i < 2; i++)
		cap->ids[r->app][i] = file_wide(r->app, i);
	return (struct ringtap_run){.size = sizeof(struct ringtap_run),
		.records = data,
		.bytes = (uint64_t)block * r->packets,
		.packets = r->packets,
		.app = r->app,
		.interfaces = fake.renumber ? cap->ids[r->app] : NULL,
		.interface_count = fake.renumber ? 2 : 2 * fake.apps};
}

const char *ringtap_version(void)
{
	return "0";
}

int ringtap_apps_find(struct ringtap_apps **out)
{
	*out = calloc(1, sizeof(**out));
	(*out)->count = fake.apps;
	return 0;
}

int ringtap_apps_search(struct ringtap_apps **out, const struct ringtap_apps_options *opts)
{
	return ringtap_apps_find(out);
}

bool ringtap_apps_foreign(const struct ringtap_apps *apps, size_t i)
{
	return false;
}

void ringtap_apps_free(struct ringtap_apps *apps)
{
	free(apps);
}

size_t ringtap_apps_count(const struct ringtap_apps *apps)
{
	return apps->count;
}

const char *ringtap_apps_name(const struct ringtap_apps *apps, size_t i)
{
	static const char *const names[] = {"app0", "app1", "app2"};

	return names[i];
}

const char *ringtap_apps_dir(const struct ringtap_apps *apps, size_t i)
{
	static const char *const dirs[] = {"/run/dpdk/app0", "/run/dpdk/app1", "/run/dpdk/app2"};

	return dirs[i];
}

uint32_t ringtap_apps_pid(const struct ringtap_apps *apps, size_t i)
{
	return 0;
}

bool ringtap_apps_secondary(const struct ringtap_apps *apps, size_t i)
{
	return false;
}

size_t ringtap_apps_primary(const struct ringtap_apps *apps, size_t i)
{
	return i;
}

size_t ringtap_apps_notes(const struct ringtap_apps *apps)
{
	return 0;
}

const char *ringtap_apps_note(const struct ringtap_apps *apps, size_t i)
{
	return NULL;
}

/* The last application has no probe, if there are three. */
int ringtap_conn_open(struct ringtap_conn **out, const char *dir,
	const struct ringtap_conn_options *opts, char *err, size_t len)
{
	static char dummy;

	*out = NULL;
	snprintf(err, len, "no probe");
	if (strstr(dir, "app2"))
		return -EPROTONOSUPPORT;
	*out = (struct ringtap_conn *)&dummy;
	return 0;
}

void ringtap_conn_close(struct ringtap_conn *conn)
{
}

int ringtap_conn_app(const struct ringtap_conn *conn, struct ringtap_app_info *out)
{
	return 0;
}

int ringtap_conn_list(struct ringtap_conn *conn, struct ringtap_list **out)
{
	static struct ringtap_port_info ports[] = {{.name = "p0", .rx_queues = 4, .tx_queues = 1},
		{.name = "p1", .port_id = 1, .rx_queues = 1, .tx_queues = 2}};

	ports[0].linktype = RINGTAP_LINKTYPE_ETHERNET;
	ports[1].linktype = fake.linktype ? fake.linktype : RINGTAP_LINKTYPE_ETHERNET;
	*out = calloc(1, sizeof(**out));
	(*out)->port_count = 2;
	(*out)->ports = (struct ringtap_array){(void *)(uintptr_t)ports, sizeof(ports[0])};
	return 0;
}

void ringtap_list_free(struct ringtap_list *list)
{
	free(list);
}

int ringtap_capture_create(
	struct ringtap_capture **out, const struct ringtap_capture_create_options *opts)
{
	*out = calloc(1, sizeof(**out));
	return 0;
}

int ringtap_capture_attach_sized(struct ringtap_capture *cap, const char *dir,
	const struct ringtap_target *ports, size_t size, size_t port_count,
	const struct ringtap_capture_options *opts)
{
	if (fake.attach_error)
		return fake.attach_error;
	fake.linktypes = 0;
	for (size_t i = 0; i < port_count; i++)
		fake.linktypes = fake.linktypes * 1000 + ports[i].linktype;
	fake.ports[fake.attached++ % 4] = (unsigned)port_count;
	return 0;
}

int ringtap_capture_start(struct ringtap_capture *cap)
{
	return fake.start_error;
}

const char *ringtap_capture_error(const struct ringtap_capture *cap)
{
	return "fake error";
}

int ringtap_capture_next_sized(struct ringtap_capture *cap, struct ringtap_run *runs, size_t size,
	unsigned max, int timeout_ms)
{
	int n = 0;

	/* Two at a time, so that batches and runs are not the same. */
	while (n < 2 && cap->next_run < fake.run_count) {
		if (n && cap->next_run == fake.late_interface)
			break;
		runs[n++] = make_run(cap, &fake.runs[cap->next_run++]);
	}
	if (n || (fake.wait_for_stop && !cap->stopped)) {
		if (!n && fake.signal_at_end) {
			int signal = fake.signal_at_end;

			fake.signal_at_end = 0;
			raise(signal);
		} else if (!n)
			rt_sleep_ns((uint64_t)timeout_ms * 1000000);
		return n;
	}
	return fake.end ? fake.end : -EPIPE;
}

void ringtap_capture_release(struct ringtap_capture *cap)
{
	fake.released++;
	/* Frees the buffers, so that ASan finds later uses of packets. */
	for (unsigned i = 0; i < cap->handed; i++)
		free(cap->buffers[i]);
	cap->handed = 0;
}

void ringtap_capture_break(struct ringtap_capture *cap)
{
}

int ringtap_capture_stop(struct ringtap_capture *cap)
{
	fake.stops++;
	cap->stopped = true;
	return 0;
}

void ringtap_capture_close(struct ringtap_capture *cap)
{
	if (!cap)
		return;
	ringtap_capture_release(cap);
	free(cap->buffers);
	free(cap);
}

/* The library's own: its functions that write blocks are real here. */
bool rt_capture_first(const struct ringtap_capture *cap, unsigned i, char *text, size_t size);
bool rt_capture_first(const struct ringtap_capture *cap, unsigned i, char *text, size_t size)
{
	*text = '\0';
	return false;
}

uint32_t rt_capture_applications(const struct ringtap_capture *cap);
uint32_t rt_capture_applications(const struct ringtap_capture *cap)
{
	return fake.attached;
}

unsigned ringtap_capture_interface_count(const struct ringtap_capture *cap)
{
	return if_count(cap);
}

int ringtap_capture_interface(
	const struct ringtap_capture *cap, unsigned i, struct ringtap_interface *out)
{
	if (i >= if_count(cap))
		return -ENOENT;
	out->app = fake.late_interface ? i % fake.apps : i / 2;
	out->port_id = (uint16_t)(fake.late_interface ? i / fake.apps : i % 2);
	out->target = 0;
	out->snaplen = RINGTAP_SNAPLEN_MAX;
	out->link_mbps = 10000;
	out->linktype = out->port_id && fake.linktype ? fake.linktype : RINGTAP_LINKTYPE_ETHERNET;
	out->sample = fake.not_sampled ? 8 : 1;
	out->nic_imissed = fake.nic_unread ? 0 : 3;
	out->nic_nombuf = fake.nic_unread ? 0 : 4;
	out->nic_ns = fake.nic_unread ? 0 : FAKE_START_NS;
	snprintf(out->app_name, sizeof(out->app_name), "app%u", out->app);
	snprintf(out->name, sizeof(out->name), "p%u", out->port_id);
	snprintf(out->device, sizeof(out->device), "p%u", out->port_id);
	snprintf(out->driver, sizeof(out->driver), "%s",
		out->port_id && fake.driver ? fake.driver : "net_fake");
	return 0;
}

/* A tap for each interface, and one that sends if it loses something. */
unsigned ringtap_capture_tap_count(const struct ringtap_capture *cap)
{
	return if_count(cap) + (fake.lost_tx > 0);
}

int ringtap_capture_tap(const struct ringtap_capture *cap, unsigned i, struct ringtap_tap *out)
{
	if (i == if_count(cap)) {
		out->interface = 1;
		out->direction = RINGTAP_TX;
		out->counts = (struct ringtap_counts){.seen = fake.lost_tx};
		out->counts.lost[RINGTAP_LOST_FULL] = fake.lost_tx;
		return 0;
	}
	out->interface = i;
	out->direction = RINGTAP_RX;
	out->counts =
		(struct ringtap_counts){.captured = cap->captured[i], .seen = cap->captured[i]};
	if (i == 0) {
		out->counts.filtered = fake.filtered;
		out->counts.lost[RINGTAP_LOST_MAX - 1] = fake.lost_later;
		out->counts.not_sampled = fake.not_sampled;
		out->counts.cut = fake.cut;
		out->counts.evicted = fake.evicted;
		out->counts.seen += fake.filtered + fake.lost_later + fake.not_sampled + fake.cut;
	}
	for (uint32_t app = 0; app < 2; app++)
		if (i == file_wide(app, 0))
			out->counts.lost[RINGTAP_LOST_FULL] = fake.lost[app];
	out->counts.seen += out->counts.lost[RINGTAP_LOST_FULL];
	return 0;
}

unsigned ringtap_capture_ring_count(const struct ringtap_capture *cap)
{
	return fake.apps;
}

int ringtap_capture_ring(const struct ringtap_capture *cap, unsigned i, struct ringtap_ring *out)
{
	out->app = i;
	out->buffer_size = fake.buffer_size;
	out->written = fake.written;
	out->pause_written = fake.pause_written;
	out->pause_lost = fake.pause_lost;
	return 0;
}

int ringtap_capture_stats(const struct ringtap_capture *cap, struct ringtap_stats *out)
{
	for (unsigned i = 0; i < if_count(cap); i++)
		out->total.captured += cap->captured[i];
	out->total.filtered = fake.filtered;
	out->total.lost[RINGTAP_LOST_FULL] = fake.lost[0] + fake.lost[1];
	out->total.lost[RINGTAP_LOST_MAX - 1] = fake.lost_later;
	out->total.not_sampled = fake.not_sampled;
	out->total.cut = fake.cut;
	out->total.evicted = fake.evicted;
	out->total.seen = out->total.captured + fake.filtered + fake.not_sampled + fake.cut +
			  fake.lost[0] + fake.lost[1] + fake.lost_later;
	out->buffer_size = fake.buffer_size;
	out->buffer_most_used = fake.buffer_most_used;
	out->longest_pause_ns = fake.longest_pause_ns;
	out->growing_lost = fake.growing_lost;
	out->growing_ns = fake.growing_ns;
	out->queues_refused = fake.queues_refused;
	out->apps_dead = !fake.end && !cap->stopped && cap->next_run == fake.run_count &&
			 !fake.wait_for_stop;
	return 0;
}

const char *ringtap_capture_buffer_error(const struct ringtap_capture *cap)
{
	return fake.buffer_error ? fake.buffer_error : "";
}

int ringtap_fates_read(const struct ringtap_capture *cap, uint32_t app, struct ringtap_fates **out)
{
	*out = fake.fates ? malloc(sizeof(**out)) : NULL;
	if (!*out)
		return -ENODATA;
	**out = *fake.fates;
	return 0;
}

void ringtap_fates_free(struct ringtap_fates *f)
{
	free(f);
}

struct ringtap_open_packets {
	uint64_t next;
};

int ringtap_open_packets_create(
	struct ringtap_open_packets **out, const struct ringtap_capture *cap, uint32_t app)
{
	*out = fake.fates ? calloc(1, sizeof(**out)) : NULL;
	return *out ? 0 : -ENODATA;
}

void ringtap_open_packets_free(struct ringtap_open_packets *it)
{
	free(it);
}

const struct ringtap_open_packet *ringtap_open_packets_next(struct ringtap_open_packets *it)
{
	return it->next < fake.fates->open + fake.fates->free ? &fake.open[it->next++] : NULL;
}

bool ringtap_capture_reason(const struct ringtap_capture *cap, uint32_t app, unsigned number,
	char out[RINGTAP_NAME_LEN])
{
	snprintf(out, RINGTAP_NAME_LEN, "reason %u", number);
	return number != 0;
}

/* ---- statistics: those of the fake, or none ---- */

struct ringtap_monitor {
	unsigned readings;
};

int ringtap_monitor_open(struct ringtap_monitor **out, const char *dir,
	const struct ringtap_monitor_options *opts, char *err, size_t errlen)
{
	*out = fake.first ? calloc(1, sizeof(**out)) : NULL;
	return *out ? 0 : -EOPNOTSUPP;
}

void ringtap_monitor_close(struct ringtap_monitor *mon)
{
	free(mon);
}

int ringtap_monitor_switch(struct ringtap_monitor *mon, const struct ringtap_monitor_options *opts,
	char *err, size_t errlen)
{
	return 0;
}

int ringtap_monitor_fd(const struct ringtap_monitor *mon)
{
	return -1;
}

int ringtap_monitor_app(const struct ringtap_monitor *mon, struct ringtap_app_info *out)
{
	out->pid = 4711;
	snprintf(out->program, sizeof(out->program), "%s", fake.program);
	return 0;
}

int ringtap_monitor_read(struct ringtap_monitor *mon, struct ringtap_snapshot **out)
{
	*out = malloc(sizeof(**out));
	**out = mon->readings++ ? *fake.now : *fake.first;
	return 0;
}

void ringtap_snapshot_free(struct ringtap_snapshot *f)
{
	free(f);
}

int ringtap_filter_check(const struct ringtap_insn *filter, uint32_t filter_len)
{
	return 0;
}
