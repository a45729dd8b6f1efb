/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "common/array.h"
#include "machine.h"
#include "rates.h"

const char *machine_root = "";

/* Fields of a line of /proc/stat, proc(5), in ticks. */
enum { IDLE = 3, IOWAIT = 4, STEAL = 7, FIELDS = 8 };

static FILE *open_path(const char *format, va_list ap)
{
	char path[512];
	int n = snprintf(path, sizeof(path), "%s", machine_root);

	vsnprintf(path + n, sizeof(path) - (size_t)n, format, ap);
	return fopen(path, "re");
}

static bool read_line(char *line, size_t size, const char *format, va_list ap)
{
	FILE *f = open_path(format, ap);
	bool ok = f && fgets(line, (int)size, f);

	if (f)
		fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = 0;
	return ok;
}

bool machine_line(char *line, size_t size, const char *format, ...)
{
	va_list ap;
	bool ok;

	va_start(ap, format);
	ok = read_line(line, size, format, ap);
	va_end(ap);
	return ok;
}

bool machine_number(uint64_t *n, const char *format, ...)
{
	char line[64];
	va_list ap;
	bool ok;

	va_start(ap, format);
	ok = read_line(line, sizeof(line), format, ap);
	va_end(ap);
	return ok && sscanf(line, "%" SCNu64, n) == 1 && *n <= INT64_MAX;
}

bool machine_listed(const char *list, uint32_t n)
{
	while (isdigit((unsigned char)*list)) {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		if (n >= from && n <= to)
			return true;
		list = *end == ',' ? end + 1 : "";
	}
	return false;
}

int machine_node(uint32_t cpu)
{
	char list[512];

	for (int node = 0; node < MACHINE_NODES; node++)
		if (machine_line(
			    list, sizeof(list), "/sys/devices/system/node/node%d/cpulist", node) &&
			machine_listed(list, cpu))
			return node;
	return -1;
}

/* ---- counters ---- */

static char *whole(const char *format, ...)
{
	char *text = NULL;
	size_t size = 0;
	va_list ap;
	FILE *f;

	va_start(ap, format);
	f = open_path(format, ap);
	va_end(ap);
	if (f && getdelim(&text, &size, 0, f) < 0) {
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

/* A name may contain anything and is in parentheses. Fields by their numbers in proc(5). */
static void read_task(struct machine_task *t, const char *stat)
{
	const char *at = strrchr(stat, ')');

	for (unsigned field = 3; at && (at = strchr(at + 1, ' ')); field++) {
		if (field == 10 || field == 12)
			t->faults += strtoull(at + 1, NULL, 10);
		else if (field == 41)
			t->policy = (uint32_t)strtoul(at + 1, NULL, 10);
	}
}

/* The last number is that of the innermost namespace. */
static uint32_t own_tid(const char *status)
{
	const char *line = status ? strstr(status, "\nNSpid:") : NULL;
	char *end = (char *)line + (line ? strlen("\nNSpid:") : 0);
	unsigned long tid = 0;

	while (line && (*end == ' ' || *end == '\t'))
		tid = strtoul(end, &end, 10);
	return (uint32_t)tid;
}

static void read_tasks(struct machine_counts *c, pid_t pid)
{
	char path[512];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/proc/%d/task", machine_root, (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char *stat, *status;
		struct machine_task *t;

		/* The files above ".." are of the whole process. */
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		stat = whole("/proc/%d/task/%.20s/stat", (int)pid, e->d_name);
		status = whole("/proc/%d/task/%.20s/status", (int)pid, e->d_name);
		t = stat ? rt_array_add(c->tasks, c->task_count) : NULL;
		if (t) {
			*t = (struct machine_task){.tid = own_tid(status)};
			read_task(t, stat);
		}
		free(stat);
		free(status);
	}
	if (d)
		closedir(d);
}

void machine_count(struct machine_counts *c, pid_t pid)
{
	*c = (struct machine_counts){.mono_ns = now_ns(CLOCK_MONOTONIC),
		.stat = whole("/proc/stat"),
		.interrupts = whole("/proc/interrupts")};
	if (pid > 0)
		read_tasks(c, pid);
}

void machine_counts_free(struct machine_counts *c)
{
	free(c->stat);
	free(c->interrupts);
	free(c->tasks);
	*c = (struct machine_counts){0};
}

const struct machine_task *machine_task(const struct machine_counts *c, uint32_t tid)
{
	for (unsigned i = 0; tid && i < c->task_count; i++)
		if (c->tasks[i].tid == tid)
			return &c->tasks[i];
	return NULL;
}

static bool cpu_ticks(const char *stat, uint32_t cpu, uint64_t v[FIELDS])
{
	char name[24];
	const char *line;
	char *end;

	snprintf(name, sizeof(name), "\ncpu%u ", cpu);
	line = stat ? strstr(stat, name) : NULL;
	if (!line)
		return false;
	end = (char *)line + strlen(name);
	for (unsigned i = 0; i < FIELDS; i++)
		v[i] = strtoull(end, &end, 10);
	return true;
}

/* CPUs that are off have no column: the place of one in the first line; -1: it has none. */
static int column_of(const char *interrupts, uint32_t cpu)
{
	const char *end = strchrnul(interrupts, '\n');
	int column = 0;

	for (const char *at = interrupts; (at = strstr(at, "CPU")) && at < end; at += 3, column++)
		if (strtoul(at + 3, NULL, 10) == cpu)
			return column;
	return -1;
}

/* Number in a column of a line, whose label ends with a colon; 0: it has none. */
static uint64_t column(const char *line, int number)
{
	const char *at = strchr(line, ':');

	for (int i = 0; at; i++) {
		char *end;
		uint64_t n = strtoull(at + 1, &end, 10);

		if (end == at + 1 || *end != ' ')
			return 0;
		if (i == number)
			return n;
		at = end;
	}
	return 0;
}

/* NULL: there is none. */
static const char *next_line(const char *line)
{
	line = strchr(line, '\n');
	return line && line[1] ? line + 1 : NULL;
}

/* The line with the same label; guess: where it is, if no line was added or removed. */
static const char *same_line(const char *text, const char *guess, const char *line)
{
	size_t n = strcspn(line, ":\n") + 1;

	if (guess && !strncmp(guess, line, n))
		return guess;
	while (text && strncmp(text, line, n))
		text = next_line(text);
	return text;
}

void machine_interrupts(struct machine_load *l, const struct machine_counts *from,
	const struct machine_counts *to, uint32_t cpu)
{
	double seconds = (double)(to->mono_ns - from->mono_ns) / 1e9;
	int now = to->interrupts ? column_of(to->interrupts, cpu) : -1;
	int before = from->interrupts ? column_of(from->interrupts, cpu) : -1;
	uint64_t most = 0, sum = 0;
	const char *guess;

	if (!(seconds > 0) || now < 0 || before < 0)
		return;
	guess = next_line(from->interrupts);
	for (const char *line = to->interrupts; (line = next_line(line));) {
		const char *old = same_line(from->interrupts, guess, line);
		const char *label = line + strspn(line, " "), *end = strchrnul(label, '\n');
		const char *name = memrchr(label, ' ', (size_t)(end - label));
		uint64_t n = grown(column(line, now), old ? column(old, before) : 0);

		guess = old ? next_line(old) : guess;
		name = name ? name + 1 : label;
		/* The timer of arm64 has a number as devices have. */
		if (!strncmp(label, "LOC:", 4) || !strncmp(name, "arch_timer\n", 11)) {
			l->ticks = (double)n / seconds;
			continue;
		}
		/* Lines without a number are not those of devices. */
		if (!isdigit((unsigned char)*label))
			continue;
		sum += n;
		if (n <= most)
			continue;
		most = n;
		snprintf(l->most, sizeof(l->most), "%.*s (IRQ %.*s)", (int)(end - name), name,
			(int)strcspn(label, ":"), label);
	}
	l->interrupts = (double)sum / seconds;
}

void machine_load(struct machine_load *l, const struct machine_counts *from,
	const struct machine_counts *to, uint32_t cpu)
{
	uint64_t a[FIELDS], b[FIELDS];
	double total = 0;

	*l = (struct machine_load){.busy = NAN, .stolen = NAN, .ticks = NAN, .interrupts = NAN};
	if (!cpu_ticks(from->stat, cpu, a) || !cpu_ticks(to->stat, cpu, b))
		return;
	for (unsigned i = 0; i < FIELDS; i++)
		total += (double)grown(b[i], a[i]);
	if (!(total > 0))
		return;
	l->stolen = (double)grown(b[STEAL], a[STEAL]) / total;
	l->busy = 1 - (double)(grown(b[IDLE], a[IDLE]) + grown(b[IOWAIT], a[IOWAIT])) / total;
}

/* ---- huge pages ---- */

static void add_pages(const char *line, uint64_t bytes[MACHINE_NODES])
{
	const char *size = strstr(line, " kernelpagesize_kB=");
	uint64_t page = size ? strtoull(strchr(size, '=') + 1, NULL, 10) << 10 : 0;

	for (const char *at = line; (at = strstr(at, " N")); at += 2) {
		char *end;
		unsigned long node = strtoul(at + 2, &end, 10);

		if (end > at + 2 && *end == '=' && node < MACHINE_NODES)
			bytes[node] += page * strtoull(end + 1, NULL, 10);
	}
}

void machine_huge_pages(pid_t pid, uint64_t bytes[MACHINE_NODES])
{
	char *text = whole("/proc/%d/numa_maps", (int)pid), *rest = text, *line;

	memset(bytes, 0, MACHINE_NODES * sizeof(*bytes));
	while (rest && (line = strsep(&rest, "\n")))
		if (strstr(line, " huge "))
			add_pages(line, bytes);
	free(text);
}
