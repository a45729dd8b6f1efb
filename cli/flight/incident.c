/* SPDX-License-Identifier: BSD-3-Clause */
/* Incidents from trigger to report. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "common/atomics.h"
#include "fates.h"
#include "flight.h"
#include "folder.h"
#include "packet_rows.h"
#include "packets.h"
#include "passages.h"
#include "reports.h"

static void incident_free(struct incident *i)
{
	if (i->file.cap)
		ringtap_capture_close(i->file.cap);
	output_free(&i->file.out);
	free(i->path);
	free(i->if_packets);
	free(i->if_lost);
	flows_free(i->flows);
	packet_rows_free(i->rows);
	passages_free(i->passages);
	for (int k = 0; k < INCIDENT_CURVES; k++)
		free(i->steps[k]);
	if (i->folder_fd >= 0)
		close(i->folder_fd);
	free(i->folder);
	free(i);
}

/* 20260102T030405.678901-NAME, in UTC: names sort by time. */
static int make_folder(struct incident *i)
{
	time_t s = (time_t)(i->event.to_ns / NS_PER_S);
	char stamp[32];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm);
	snprintf(i->name, sizeof(i->name), "%s.%06" PRIu64 "-%.24s", stamp,
		i->event.to_ns % NS_PER_S / 1000, i->trigger->name);
	if (asprintf(&i->folder, "%s/%s", i->f->cfg->folder, i->name) < 0)
		return -ENOMEM;
	if (mkdir(i->folder, 0700))
		return -errno;
	i->folder_fd = open(i->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (i->folder_fd < 0 || flock(i->folder_fd, LOCK_EX | LOCK_NB))
		return -errno;
	return asprintf(&i->path, "%s/" FLIGHT_PACKETS, i->folder) < 0 ? -ENOMEM : 0;
}

static void make_comment(struct incident *i)
{
	char value[64], limit[64], when[32];
	time_t s = (time_t)(i->event.to_ns / NS_PER_S);
	struct tm tm;

	trigger_value(i->trigger, i->event.value, value, sizeof(value));
	trigger_value(i->trigger, i->trigger->threshold, limit, sizeof(limit));
	gmtime_r(&s, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(i->comment, sizeof(i->comment),
		"ringtap flight: trigger '%s'%s%s%s%s%s%s at %s.%09" PRIu64 "Z%s%s",
		i->trigger->text, *i->event.where ? " at " : "", i->event.where,
		*value ? ", value " : "", value, *limit ? ", threshold " : "", limit, when,
		i->event.to_ns % NS_PER_S, *i->event.comment ? ": " : "", i->event.comment);
}

static void describe(const void *ctx, const struct ringtap_interface *interface,
	struct ringtap_pcapng_interface_options *o)
{
	const struct flight_config *cfg = ctx;

	o->filter = cfg->filter;
}

static int prepare(struct incident *i)
{
	struct ringtap_kept kept = {.size = sizeof(kept)};
	int ret = make_folder(i);

	if (!ret)
		ret = reports_reserve(i);
	if (ret)
		return ret;
	make_comment(i);
	i->comments[0] = i->comment;
	i->file.comments = i->comments;
	i->file.describe = describe;
	i->file.ctx = i->f->cfg;
	ret = output_init(&i->file.out, &packets_options, 0);
	if (!ret)
		ret = ringtap_capture_window(i->f->cap, i->from_ns, i->to_ns, &i->file.cap);
	if (ret)
		return ret;
	ringtap_capture_kept(i->file.cap, &kept);
	i->since_ns = kept.since_ns;
	return -pthread_create(&i->thread, NULL, packets_write, i);
}

static void print_begun(const struct incident *i)
{
	char value[64];

	trigger_value(i->trigger, i->event.value, value, sizeof(value));
	if (!i->f->cfg->quiet)
		fprintf(stderr, "Incident %s: %s%s%s%s%s\n", i->name, i->trigger->text,
			*value ? ": " : "", value, *i->event.where ? ", " : "", i->event.where);
}

int incident_begin(struct flight *f, const struct trigger *t, const struct event *e)
{
	struct incident *i;
	int ret;

	if (f->incident_count == FLIGHT_INCIDENTS_MAX) {
		message_print("flight: %s: %d incidents are being written already; not recorded",
			t->text, FLIGHT_INCIDENTS_MAX);
		f->failed++;
		return -EBUSY;
	}
	i = calloc(1, sizeof(*i));
	if (!i) {
		message_print("flight: incident '%s': no memory; not recorded", t->text);
		f->failed++;
		return -ENOMEM;
	}
	i->f = f;
	i->folder_fd = -1;
	i->trigger = t;
	i->event = *e;
	i->from_ns = e->from_ns > t->before_ns ? e->from_ns - t->before_ns : 0;
	i->to_ns = e->to_ns + t->after_ns;
	i->begun_ns = now_ns(CLOCK_MONOTONIC);
	ret = prepare(i);
	if (ret) {
		message_print("flight: incident '%s': %s; not recorded%s", t->text, strerror(-ret),
			write_advice(ret));
		f->failed++;
		if (i->folder_fd >= 0)
			folder_remove(f->cfg->folder, i->name);
		incident_free(i);
		return ret;
	}
	f->incidents[f->incident_count++] = i;
	f->made++;
	flight_state(f, t)->made++;
	print_begun(i);
	return 0;
}

static void note_finished(struct flight *f, const struct incident *i, bool failed)
{
	struct finished *d = &f->recent[f->finished++ % FLIGHT_RECENT];

	*d = (struct finished){.packets = i->packets,
		.bytes = i->bytes,
		.lost = i->lost,
		.missing_ns = incident_missing_ns(i),
		.failed = failed};
	memcpy(d->name, i->name, sizeof(d->name));
	f->failed += failed;
	f->incomplete += d->missing_ns > 0;
	f->missing_ns += d->missing_ns;
	f->incident_lost += d->lost;
}

void incident_finish(struct flight *f, struct incident *i)
{
	char packets[FORMAT_LEN], bytes[FORMAT_LEN];
	int ret;

	pthread_join(i->thread, NULL);
	ret = flight_fates_finish(i);
	if (ret)
		message_print("flight: fates of %s: %s; explain does not know all of them",
			i->folder, strerror(-ret));
	counted_past_read(&f->counted, true);
	ret = reports_write(i);
	note_finished(f, i, i->error || ret);
	if (i->error || ret) {
		message_print("flight: writing %s: %s; what was written before is whole%s",
			i->folder,
			i->error == -EFBIG ? "more than --max-disk"
					   : strerror(i->error ? -i->error : -ret),
			i->error == -EFBIG ? "" : write_advice(i->error ? i->error : ret));
	} else if (!f->cfg->quiet) {
		fprintf(stderr, "Incident %s: %s packets, %s\n", i->name,
			format_count(packets, i->packets), format_bytes(bytes, (double)i->bytes));
	}
	folder_prune(f->cfg->folder, f->cfg->max_incidents, f->cfg->max_disk);
	incident_free(i);
}

struct incident *incident_take_written(struct flight *f)
{
	for (unsigned k = 0; k < f->incident_count; k++) {
		struct incident *i = f->incidents[k];

		/* Pairs with the release in packets_write(). */
		if (!rt_load_acquire(&i->done) || flight_fates_wait(f, i))
			continue;
		f->incidents[k] = f->incidents[--f->incident_count];
		return i;
	}
	return NULL;
}
