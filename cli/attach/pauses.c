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
#include "common/now.h"
#include "measure/rates.h"
#include "pauses.h"

/* The kernel adds a wait to schedstat when it ends. */
#define STILL_NS UINT64_C(1000000000)
#define LOOK_NS  UINT64_C(1000000)

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

/* A number of /proc/PID/status; name: with the end of the line before it, and a colon. */
static bool find(const char *text, const char *name, uint64_t *value)
{
	const char *at = strstr(text, name);

	return at && sscanf(at + strlen(name), "%" SCNu64, value) == 1;
}

static int read_thread(const char *tasks, pid_t tid, struct pause_thread *t)
{
	uint64_t taken;
	char text[4096];
	const char *at;
	int ret = read_file(tasks, tid, "schedstat", text, sizeof(text));

	if (!ret && sscanf(text, "%*u %" SCNu64 " %" SCNu64, &t->wait_ns, &t->turns) != 2)
		ret = -EINVAL;
	if (!ret)
		ret = read_file(tasks, tid, "status", text, sizeof(text));
	if (ret)
		return ret;
	at = strstr(text, "\nState:");
	t->running = at && at[strlen("\nState:\t")] == 'R';
	if (!find(text, "\nvoluntary_ctxt_switches:", &t->sleeps) ||
		!find(text, "\nnonvoluntary_ctxt_switches:", &taken))
		return -EINVAL;
	/* It got the CPU turns times, and left it as often unless it has it now. */
	t->waits = t->running && t->turns <= t->sleeps + taken;
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

/* The thread as it is now; if it waits for a CPU, as it is once it has got one. */
static int read_awaited(const char *tasks, pid_t tid, struct pause_thread *t, uint64_t *left_ns)
{
	struct pause_thread first;
	uint64_t still_ns = 0;
	int ret = read_thread(tasks, tid, t);

	first = *t;
	while (!ret && first.waits && t->turns == first.turns && *left_ns) {
		*left_ns -= LOOK_NS;
		still_ns += LOOK_NS;
		rt_sleep_ns(LOOK_NS);
		ret = read_thread(tasks, tid, t);
	}
	t->waits = first.waits && t->turns == first.turns;
	t->wait_ns += t->waits ? still_ns : 0;
	return ret;
}

void pauses_end(struct pauses *p, const char *tasks)
{
	uint64_t left_ns = STILL_NS;
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct pause_thread *before = &p->threads[i];
		struct pause_thread t = {0};

		if (read_awaited(tasks, before->tid, &t, &left_ns) || !before->running ||
			!t.running || t.sleeps != before->sleeps)
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
		fprintf(f, "  %9s  %sthread %s (%d)\n",
			format_ns(time, (double)p->threads[i].wait_ns),
			p->threads[i].waits ? "and more, as it still waits: " : "",
			printable(name, sizeof(name), p->threads[i].name), (int)p->threads[i].tid);
}

json_t *pauses_json(const struct pauses *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->count && !p->error; i++) {
		const struct pause_thread *t = &p->threads[i];

		json_t *j = json_thread(UINT32_MAX, t->name, (uint32_t)t->tid);

		json_put(j, "off_cpu_at_most_ns", t->waits ? json_null() : json_count(t->wait_ns));
		json_array_append_new(list, j);
	}
	if (!p->error)
		return list;
	json_decref(list);
	return json_null();
}
