/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands beside an incident's packets. FLIGHT_INCIDENT comes last: a folder with it is
 * complete.
 *
 * The disk may be full by then. FLIGHT_INCIDENT has its space from the beginning, and names the
 * files that could not be written, which are removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "measure/metrics.h"
#include "web/page.h"
#include "flight.h"
#include "flow_report.h"
#include "folder.h"
#include "history.h"
#include "intervals.h"
#include "reports.h"
#include "timeline.h"
#include "view.h"

#define RESERVED 32768 /* bytes of FLIGHT_INCIDENT; with its flows it has at most about 12 KiB */

/* flags: O_TRUNC, or 0 to write over what has space on the disk. */
static FILE *create(const struct incident *i, const char *name, int flags, char **path)
{
	FILE *f = NULL;
	int fd;

	if (asprintf(path, "%s/%s", i->folder, name) < 0) {
		*path = NULL;
		return NULL;
	}
	fd = open(*path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd >= 0)
		f = fdopen(fd, "w");
	if (fd >= 0 && !f)
		close(fd);
	return f;
}

static int finish(FILE *f, int ret)
{
	if (!ret && (fflush(f) || ferror(f)))
		ret = errno ? -errno : -EIO;
	if (fclose(f) && !ret)
		ret = -errno;
	return ret;
}

/* Frees j. flags: as of create(). */
static int write_json(const struct incident *i, const char *name, int flags, json_t *j)
{
	char *path;
	FILE *f = create(i, name, flags, &path);
	int ret = f ? json_print(j, f) : -errno;

	if (f && !ret && !flags && ftruncate(fileno(f), ftell(f)))
		ret = -errno;
	if (f)
		ret = finish(f, ret);
	else
		json_decref(j);
	free(path);
	return ret;
}

/* ---- metrics.json */

static json_t *application_json(const struct incident *i)
{
	return json_application(i->f->app.name, i->f->app.info.pid, i->f->app.info.program);
}

static json_t *interval(const struct flight *f, unsigned a, unsigned b)
{
	const struct span s = history_span(f, a, b);
	json_t *j = json_object();

	json_object_set_new(j, "from", json_time(s.from->taken_ns));
	json_object_set_new(j, "to", json_time(s.to->taken_ns));
	if (s.seconds > 0)
		metrics_json_all(j, &s);
	return j;
}

static int write_metrics(const struct incident *i, unsigned first, unsigned last)
{
	json_t *app = application_json(i), *j, *seconds = json_array();

	for (unsigned k = first; k < last; k++)
		json_array_append_new(seconds, interval(i->f, k, k + 1));
	json_object_set_new(app, "seconds", seconds);
	json_object_set_new(app, "all", interval(i->f, first, last));
	j = json_document("flight", app);
	json_object_set_new(j, "incident", json_text(i->name));
	return write_json(i, FLIGHT_METRICS, O_TRUNC, j);
}

/* ---- doctor.txt */

/* d NULL: there is none. */
static int write_doctor(
	const struct incident *i, const struct examination *e, const struct diagnosis *d)
{
	char *path = NULL;
	FILE *f;
	int ret;

	if (!d)
		return 0;
	f = create(i, FLIGHT_DOCTOR, O_TRUNC, &path);
	ret = f ? 0 : -errno;
	if (f) {
		diagnosis_print(f, e, d);
		ret = finish(f, 0);
	}
	free(path);
	return ret;
}

/* ---- index.html */

static int write_page(
	const struct incident *i, unsigned first, unsigned last, const struct diagnosis *d)
{
	char *path;
	FILE *f = create(i, FLIGHT_PAGE, O_TRUNC, &path);
	int ret = f ? web_page_write(incident_view(i, first, last, d), f) : -errno;

	if (f)
		ret = finish(f, ret);
	free(path);
	return ret;
}

/* ---- incident.json */

uint64_t incident_missing_ns(const struct incident *i)
{
	uint64_t since = i->since_ns > i->f->start_ns ? i->since_ns : i->f->start_ns;

	return since > i->from_ns ? since - i->from_ns : 0;
}

static json_t *trigger_json(const struct incident *i)
{
	const struct trigger *t = i->trigger;
	char value[64], limit[64];

	trigger_value(t, i->event.value, value, sizeof(value));
	trigger_value(t, t->threshold, limit, sizeof(limit));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", json_text(t->name),
		"condition", json_text(t->text), "where",
		*i->event.where ? json_text(i->event.where) : json_null(), "value",
		*value ? json_text(value) : json_null(), "threshold",
		*limit ? json_text(limit) : json_null(), "suppressed_before",
		json_count(flight_state(i->f, t)->suppressed), "number",
		json_number(i->event.value), "comment",
		*i->event.comment ? json_text(i->event.comment) : json_null());
}

/* The application's own counters: they cannot be compared with the packets of the window, which
 * begins and ends at other times. */
static json_t *counted_document(const struct incident *i)
{
	struct counted c;
	json_t *j;

	if (!counted_past_since(&i->f->counted, i->from_ns, &c))
		return json_null();
	j = counted_json(&c, (struct counted_fates){0});
	counted_free(&c);
	return j;
}

/* missing: names of files. */
static json_t *incident_json(const struct incident *i, json_t *missing, bool flows)
{
	json_t *j = json_document("flight", application_json(i));

	json_object_set_new(j, "name", json_text(i->name));
	json_object_set_new(j, "trigger", trigger_json(i));
	json_object_set_new(j, "event_from", json_time(i->event.from_ns));
	json_object_set_new(j, "event_to", json_time(i->event.to_ns));
	json_object_set_new(j, "from", json_time(i->from_ns));
	json_object_set_new(j, "to", json_time(i->to_ns));
	json_object_set_new(j, "window_ns", json_count(i->to_ns - i->from_ns));
	json_object_set_new(j, "missing_ns", json_count(incident_missing_ns(i)));
	json_object_set_new(j, "kept_since", json_time(i->since_ns));
	json_object_set_new(j, "packets", json_count(i->packets));
	json_object_set_new(j, "bytes", json_count(i->bytes));
	json_object_set_new(j, "lost", json_count(i->lost));
	json_object_set_new(j, "first_packet", json_time(i->first_ns));
	json_object_set_new(j, "last_packet", json_time(i->last_ns));
	json_object_set_new(j, "first_byte_after_ns",
		i->first_byte_ns ? json_count(i->first_byte_ns - i->begun_ns) : json_null());
	json_object_set_new(j, "written_after_ns", json_count(i->written_ns - i->begun_ns));
	json_object_set_new(j, "finished_after_ns", json_count(i->finished_ns - i->begun_ns));
	json_object_set_new(j, "write_cpu_ns", json_count(i->write_cpu_ns));
	json_object_set_new(j, "survey_cpu_ns", json_count(i->count_cpu_ns));
	json_object_set_new(j, "flows", flows ? flow_report_json(i) : json_null());
	json_object_set_new(j, "counted_by_application", counted_document(i));
	json_object_set_new(j, "error",
		i->error ? json_text(i->error == -EFBIG ? "more than --max-disk"
							: strerror(-i->error))
			 : json_null());
	json_object_set(j, "not_written", missing);
	return j;
}

int reports_reserve(const struct incident *i)
{
	char *path;
	FILE *f = create(i, FLIGHT_UNFINISHED, O_TRUNC, &path);
	int ret = f ? -posix_fallocate(fileno(f), 0, RESERVED) : -errno;

	if (f)
		ret = finish(f, ret);
	free(path);
	return ret;
}

/* Under its name only when it is whole: programs wait for it. */
static int write_last(const struct incident *i, json_t *missing)
{
	char *from = folder_path(i->folder, FLIGHT_UNFINISHED, NULL);
	char *to = folder_path(i->folder, FLIGHT_INCIDENT, NULL);
	int ret = -ENOMEM;

	if (from && to)
		ret = write_json(i, FLIGHT_UNFINISHED, 0, incident_json(i, missing, true));
	/* Some file systems give no space that lasts. */
	if (from && to && ret)
		ret = write_json(i, FLIGHT_UNFINISHED, 0, incident_json(i, missing, false));
	if (!ret && rename(from, to))
		ret = -errno;
	free(from);
	free(to);
	return ret;
}

/* ---- all of them */

/* Half a file would be no JSON and no page. */
static int check(const struct incident *i, json_t *missing, const char *name, int ret)
{
	char *path;

	if (!ret)
		return 0;
	json_array_append_new(missing, json_text(name));
	path = folder_path(i->folder, name, NULL);
	if (path)
		unlink(path);
	free(path);
	return ret;
}

int reports_write(struct incident *i)
{
	json_t *missing = json_array();
	struct diagnosis *d = NULL;
	unsigned first = 0, last = 0;
	int rets[6] = {0}, ret = 0;
	struct examination e;

	if (history_around(i->f, i->from_ns, i->to_ns, &first, &last)) {
		d = history_judge(i->f, first, last, &e);
		rets[0] = check(i, missing, FLIGHT_METRICS, write_metrics(i, first, last));
		rets[1] = check(i, missing, FLIGHT_DOCTOR, write_doctor(i, &e, d));
	}
	rets[2] = check(i, missing, FLIGHT_PAGE, write_page(i, first, last, d));
	rets[3] = check(i, missing, FLIGHT_TRACE,
		write_json(i, FLIGHT_TRACE, O_TRUNC, timeline_json(i, first, last)));
	rets[4] = i->error ? 0 : intervals_write(i, last);
	rets[5] = write_last(i, missing);
	json_decref(missing);
	free(d);
	for (unsigned k = 0; k < 6 && !ret; k++)
		ret = rets[k];
	return ret;
}
