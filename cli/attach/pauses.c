/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "common/array.h"
#include "measure/rates.h"
#include "pauses.h"

/* 0 or -errno. */
static int read_file(const char *tasks, pid_t tid, const char *name, char *text, size_t size)
{
	char path[PATH_MAX];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/%s", tasks, (int)tid, name);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
	return n ? 0 : -ENODATA;
}

static int read_thread(const char *tasks, pid_t tid, struct pause_thread *t)
{
	static const char sleeps[] = "\nvoluntary_ctxt_switches:";
	char text[4096];
	const char *at;
	int ret = read_file(tasks, tid, "schedstat", text, sizeof(text));

	if (!ret && sscanf(text, "%*u %" SCNu64, &t->wait_ns) != 1)
		ret = -EINVAL;
	if (!ret)
		ret = read_file(tasks, tid, "status", text, sizeof(text));
	if (ret)
		return ret;
	at = strstr(text, "\nState:");
	t->running = at && at[strlen("\nState:\t")] == 'R';
	at = strstr(text, sleeps);
	if (!at || sscanf(at + strlen(sleeps), "%" SCNu64, &t->sleeps) != 1)
		return -EINVAL;
	t->tid = tid;
	ret = read_file(tasks, tid, "comm", text, sizeof(text));
	snprintf(t->name, sizeof(t->name), "%.*s", (int)strcspn(text, "\n"), text);
	return ret;
}

void pauses_begin(struct pauses *p, const char *tasks)
{
	DIR *d = opendir(tasks);
	struct dirent *e;

	*p = (struct pauses){.error = d ? 0 : -errno};
	while (d && !p->error && (e = readdir(d))) {
		struct pause_thread t = {0}, *added;
		pid_t tid = atoi(e->d_name);
		int ret = tid > 0 ? read_thread(tasks, tid, &t) : -ESRCH;

		added = ret ? NULL : rt_array_add(p->threads, p->count);
		if (added)
			*added = t;
		else if (tid > 0 && ret != -ESRCH) /* it has not ended meanwhile */
			p->error = ret ? ret : -ENOMEM;
	}
	if (d)
		closedir(d);
}

void pauses_end(struct pauses *p, const char *tasks)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct pause_thread *before = &p->threads[i];
		struct pause_thread t = {0};

		if (read_thread(tasks, before->tid, &t) || !before->running || !t.running ||
			t.sleeps != before->sleeps)
			continue;
		t.wait_ns -= before->wait_ns;
		p->threads[kept++] = t;
	}
	p->count = kept;
}

void pauses_free(struct pauses *p)
{
	free(p->threads);
}

void pauses_print(const struct pauses *p, FILE *f)
{
	char name[sizeof(p->threads->name)], time[FORMAT_LEN];

	if (p->error) {
		fprintf(f,
			"No polling thread was stopped; how long they were off their CPU was "
			"not measured: %s\n",
			strerror(-p->error));
		return;
	}
	fprintf(f, "No polling thread was stopped%s\n",
		p->count ? "; off its CPU meanwhile, for at most:" : ", and none polled");
	for (size_t i = 0; i < p->count; i++)
		fprintf(f, "  %9s  thread %s (%d)\n",
			format_ns(time, (double)p->threads[i].wait_ns),
			printable(name, sizeof(name), p->threads[i].name), (int)p->threads[i].tid);
}

json_t *pauses_json(const struct pauses *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->count && !p->error; i++) {
		const struct pause_thread *t = &p->threads[i];

		json_t *j = json_thread(UINT32_MAX, t->name, (uint32_t)t->tid);

		json_put(j, "off_cpu_at_most_ns", json_count(t->wait_ns));
		json_array_append_new(list, j);
	}
	if (!p->error)
		return list;
	json_decref(list);
	return json_null();
}
