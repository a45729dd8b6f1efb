/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"
#include "counts.h"
#include "record.h"
#include "report.h"
#include "base/util.h"

static void set_counts(json_t *j, const struct ringtap_counts *c)
{
	json_t *lost = json_object();

	json_object_set_new(j, "seen", json_count(c->seen));
	json_object_set_new(j, "captured", json_count(c->captured));
	json_object_set_new(j, "filtered", json_count(c->filtered));
	json_object_set_new(j, "not_sampled", json_count(c->not_sampled));
	json_object_set_new(j, "cut", json_count(c->cut));
	json_object_set_new(j, "flows_evicted", json_count(c->evicted));
	for (unsigned i = 0; ringtap_loss_name(i); i++)
		json_object_set_new(lost, ringtap_loss_name(i), json_count(c->lost[i]));
	json_object_set_new(j, "lost", lost);
	json_object_set_new(j, "lost_total", json_count(counts_lost(c)));
	json_object_set_new(j, "bytes", json_count(c->bytes));
}

static json_t *json_taps(const struct recorder *r, unsigned interface)
{
	unsigned count = ringtap_capture_tap_count(r->cap);
	json_t *taps = json_array();

	for (unsigned i = 0; i < count; i++) {
		struct ringtap_tap t = {.size = sizeof(t)};
		json_t *j;

		if (ringtap_capture_tap(r->cap, i, &t) || t.interface != interface)
			continue;
		j = json_object();
		json_object_set_new(j, "queue", json_count(t.queue));
		json_object_set_new(
			j, "direction", json_text(t.direction == RINGTAP_TX ? "tx" : "rx"));
		set_counts(j, &t.counts);
		json_array_append_new(taps, j);
	}
	return taps;
}

/* Without a reading of the driver nothing is known. Older probes give no time of it. */
static json_t *json_nic(const struct ringtap_interface *i)
{
	const struct {
		const char *key;
		uint64_t n;
	} counters[] = {{"rx_packets", i->nic_ipackets}, {"tx_packets", i->nic_opackets},
		{"missed", i->nic_imissed}, {"rx_errors", i->nic_ierrors},
		{"no_mbuf", i->nic_nombuf}, {"tx_errors", i->nic_oerrors}};
	const size_t count = sizeof(counters) / sizeof(counters[0]);
	json_t *j = json_object();
	bool known = i->nic_ns;

	for (size_t k = 0; k < count; k++)
		known |= counters[k].n > 0;
	for (size_t k = 0; k < count; k++)
		json_object_set_new(
			j, counters[k].key, known ? json_count(counters[k].n) : json_null());
	return j;
}

static json_t *json_interface(
	const struct recorder *r, unsigned i, const struct ringtap_interface *iface)
{
	const struct ringtap_interface info = *iface;
	json_t *j = json_port(info.port_id, info.name);
	char mac[FORMAT_LEN];

	json_object_set_new(j, "interface", json_count(i));
	json_object_set_new(j, "driver", json_text(info.driver));
	json_object_set_new(j, "mac", json_text(format_mac(mac, info.mac)));
	json_object_set_new(
		j, "link_mbps", info.link_mbps ? json_count(info.link_mbps) : json_null());
	json_object_set_new(j, "snapshot_bytes", json_count(info.snaplen));
	json_object_set_new(j, "sample", json_count(info.sample));
	json_object_set_new(j, "first", json_text(r->cfg->first));
	json_object_set_new(j, "filter",
		json_text(targets_iface(&r->targets, &r->cfg->capture, &info)->filter));
	json_object_set_new(j, "removed", json_boolean(info.gone));
	set_counts(j, &r->shares[i].counts);
	json_object_set_new(j, "nic", json_nic(&info));
	json_object_set_new(j, "nic_read", json_time(info.nic_ns));
	json_object_set_new(j, "taps", json_taps(r, i));
	return j;
}

static json_t *json_files(const struct recorder *r)
{
	json_t *files = json_array();

	for (size_t i = 0; i < r->files.count; i++) {
		json_t *j = json_object();

		json_object_set_new(j, "name", json_text(r->files.list[i].name));
		json_object_set_new(j, "bytes", json_count(r->files.list[i].bytes));
		json_object_set_new(j, "packets", json_count(r->files.list[i].packets));
		json_array_append_new(files, j);
	}
	return files;
}

static json_t *json_interfaces(const struct recorder *r, unsigned app)
{
	struct ringtap_interface info = {.size = sizeof(info)};
	json_t *list = json_array();

	for (unsigned i = 0; i < r->share_count; i++)
		if (!ringtap_capture_interface(r->cap, i, &info) && info.app == app)
			json_array_append_new(list, json_interface(r, i, &info));
	return list;
}

/* In order of attaching. */
static json_t *json_target(const struct recorder *r, unsigned app)
{
	const struct target *t = &r->targets.list[app];
	json_t *j;
	size_t i = 0;

	while (i < ringtap_apps_count(r->targets.apps) &&
		ringtap_apps_dir(r->targets.apps, i) != t->dir)
		i++;
	j = json_application(t->name,
		i < ringtap_apps_count(r->targets.apps) ? ringtap_apps_pid(r->targets.apps, i) : 0,
		NULL);
	json_object_set_new(j, "interfaces", json_interfaces(r, app));
	return j;
}

static json_t *json_applications(const struct recorder *r)
{
	json_t *apps = json_array();

	for (unsigned i = 0; i < r->targets.count; i++)
		json_array_append_new(apps, json_target(r, i));
	return apps;
}

static void set_totals(json_t *j, const struct recorder *r)
{
	struct ringtap_stats s = {.size = sizeof(s)};

	ringtap_capture_stats(r->cap, &s);
	set_counts(j, &s.total);
	json_object_set_new(j, "written", json_count(r->written));
	json_object_set_new(j, "discarded",
		json_count(s.total.captured > r->written ? s.total.captured - r->written : 0));
	json_object_set_new(j, "delivered", json_count(s.delivered));
	json_object_set_new(j, "reordered", json_count(s.reordered));
	json_object_set_new(j, "queues_refused", json_count(s.queues_refused));
	json_object_set_new(j, "applications_ended", json_count(s.apps_dead));
	json_object_set_new(j, "buffer_bytes", json_count(s.buffer_size));
	json_object_set_new(j, "buffer_most_used_bytes", json_count(s.buffer_most_used));
	json_object_set_new(j, "longest_pause_ns", json_count(s.longest_pause_ns));
	json_object_set_new(j, "cpu_wait_ns", json_count(r->waited_ns - r->waited_before_ns));
	json_object_set_new(j, "duration_ns", json_ns(recorder_seconds(r) * 1e9));
	json_object_set_new(j, "packets_per_second", json_number(recorder_rate(r)));
}

static json_t *json_fates(const struct recorder *r)
{
	struct rt_fates_queue q;
	json_t *j;

	if (!record_fates_total(r, &q))
		return json_null();
	j = json_object();
	json_object_set_new(j, "received", json_count(q.received));
	json_object_set_new(j, "offered", json_count(q.offered));
	json_object_set_new(j, "not_offered", json_count(q.not_offered));
	json_object_set_new(j, "open", json_count(q.open));
	json_object_set_new(j, "unknown", json_count(q.unknown));
	json_object_set_new(j, "likely_offered", json_count(q.inferred));
	json_object_set_new(j, "lost", json_count(q.lost));
	return j;
}

void report_json(const struct recorder *r, FILE *f)
{
	json_t *j = json_document("record", json_applications(r));

	json_object_set_new(j, "client", json_text(r->cfg->client));
	json_object_set_new(j, "ended_by", json_text(end_name(r->end)));
	json_object_set_new(j, "error", json_text(r->error_text));
	json_object_set_new(j, "start", json_time(r->start_ns));
	json_object_set_new(j, "end", json_time(r->end_ns));
	set_totals(j, r);
	json_object_set_new(j, "files", json_files(r));
	json_object_set_new(j, "fates", json_fates(r));
	json_print(j, f);
}
