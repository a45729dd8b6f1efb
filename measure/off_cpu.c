/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of perf, and what is found in them. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "off_cpu.h"

#define FIXED 16 /* bytes of time and CPU, and their padding */

/* ---- what perf writes */

/* "field:TYPE NAME;\toffset:N;\tsize:N;" */
static unsigned offset_of(const char *text, const char *field, unsigned size)
{
	unsigned offset, bytes;
	const char *at = strstr(text, field);

	if (!at || sscanf(at + strlen(field), " offset:%u; size:%u;", &offset, &bytes) != 2)
		return 0;
	return bytes == size && offset < 4096 ? offset : 0;
}

bool off_cpu_format_parse(const char *text, struct off_cpu_format *out)
{
	const char *id = strstr(text, "ID: ");

	*out = (struct off_cpu_format){.id = id ? (unsigned)strtoul(id + 4, NULL, 10) : 0,
		.state = offset_of(text, "prev_state;", sizeof(long)),
		.name = offset_of(text, "next_comm[16];", 16),
		.task = offset_of(text, "next_pid;", 4)};
	return out->id && out->state && out->name && out->task;
}

/* TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, __TASK_STOPPED and __TASK_TRACED; above them only flags
 * of these, such as TASK_REPORT_MAX of a task that was preempted. */
static enum off_cpu_how how_of(unsigned long state)
{
	return state & 1    ? OFF_SLEPT
	       : state & 2  ? OFF_BLOCKED
	       : state & 12 ? OFF_STOPPED
			    : OFF_WAITED;
}

/* p: behind time and CPU. */
static bool parse_sample(const struct off_cpu_format *format, const uint8_t *p, size_t size,
	struct off_cpu_record *out)
{
	unsigned long state;
	uint32_t raw;

	if (size < sizeof(raw))
		return false;
	memcpy(&raw, p, sizeof(raw));
	p += sizeof(raw);
	size -= sizeof(raw);
	out->how = OFF_FAULTED;
	if (raw <= sizeof(uint32_t)) /* no tracepoint */
		return true;
	if (raw > size || format->state + sizeof(state) > raw ||
		format->name + sizeof(out->name) > raw || format->task + sizeof(out->task) > raw)
		return false;
	memcpy(&state, p + format->state, sizeof(state));
	memcpy(&out->task, p + format->task, sizeof(out->task));
	memcpy(out->name, p + format->name, sizeof(out->name));
	out->name[sizeof(out->name) - 1] = '\0';
	out->how = how_of(state);
	return true;
}

bool off_cpu_record_parse(const struct off_cpu_format *format, const void *record, size_t size,
	struct off_cpu_record *out)
{
	struct perf_event_header h;
	const uint8_t *p = record;

	*out = (struct off_cpu_record){0};
	if (size < sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	if (h.size > size || h.size < sizeof(h) + FIXED)
		return false;
	p += sizeof(h);
	memcpy(&out->mono_ns, p, sizeof(out->mono_ns));
	memcpy(&out->cpu, p + sizeof(out->mono_ns), sizeof(out->cpu));
	if (h.type == PERF_RECORD_SAMPLE)
		return parse_sample(format, p + FIXED, h.size - sizeof(h) - FIXED, out);
	out->in = h.type == PERF_RECORD_SWITCH && !(h.misc & PERF_RECORD_MISC_SWITCH_OUT);
	return out->in;
}

/* ---- interrupts */

#define IRQ_FIELD 8 /* number of an interrupt, and behind it where its name is */

unsigned irq_format_parse(const char *text, enum irq_kind kind, bool begins)
{
	static const char *const fields[] = {"irq;", "vec;", "vector;"};
	const char *id = strstr(text, "ID: ");

	if (!id || (begins && offset_of(text, fields[kind], 4) != IRQ_FIELD) ||
		(begins && kind == IRQ_HARD &&
			offset_of(text, "__data_loc char[] name;", 4) != IRQ_FIELD + 4))
		return 0;
	return (unsigned)strtoul(id + 4, NULL, 10);
}

/* raw: the tracepoint's fields. */
static void name_irq(enum irq_kind kind, const uint8_t *raw, uint32_t size, char name[IRQ_NAME])
{
	static const char *const soft[] = {"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL",
		"TASKLET", "SCHED", "HRTIMER", "RCU"};
	uint32_t number, place, at;

	memcpy(&number, raw + IRQ_FIELD, sizeof(number));
	snprintf(name, IRQ_NAME, "%s", kind == IRQ_TIMER ? "timer" : "interrupt");
	if (kind == IRQ_SOFT && number < sizeof(soft) / sizeof(*soft))
		snprintf(name, IRQ_NAME, "softirq %s", soft[number]);
	if (kind != IRQ_HARD || size < IRQ_FIELD + 8)
		return;
	memcpy(&place, raw + IRQ_FIELD + 4, sizeof(place));
	at = place & 0xffff; /* and its length above */
	if (at < size)
		snprintf(name, IRQ_NAME, "%.*s", (int)(size - at), (const char *)raw + at);
}

bool irq_record_parse(const struct off_cpu_format *format, const void *record, size_t size,
	struct irq_record *out)
{
	struct perf_event_header h;
	const uint8_t *p = record;
	uint16_t id;
	uint32_t raw;

	*out = (struct irq_record){0};
	if (size < sizeof(h) + FIXED + sizeof(raw) + IRQ_FIELD + 4)
		return false;
	memcpy(&h, p, sizeof(h));
	memcpy(&out->mono_ns, p + sizeof(h), sizeof(out->mono_ns));
	memcpy(&raw, p + sizeof(h) + FIXED, sizeof(raw));
	p += sizeof(h) + FIXED + sizeof(raw);
	if (h.type != PERF_RECORD_SAMPLE || h.size > size || raw < IRQ_FIELD + 4 ||
		raw > h.size - sizeof(h) - FIXED - sizeof(raw))
		return false;
	memcpy(&id, p, sizeof(id));
	for (unsigned k = 0; k < 2 * IRQ_KINDS; k++) {
		if (!id || format->irq[k / 2][k % 2] != id)
			continue;
		out->begins = k % 2 == 0;
		name_irq((enum irq_kind)(k / 2), p, raw, out->name);
		return true;
	}
	return false;
}

void irq_time_add(struct off_cpus *o, uint64_t *last, const struct irq_time *new)
{
	struct irq_time *t = &o->irqs[(*last - 1) % IRQ_TIMES_KEPT];

	if (*last && o->irq_count - *last < IRQ_TIMES_KEPT && !strcmp(t->name, new->name) &&
		new->from_ns - t->to_ns < IRQ_PAUSE_NS) {
		t->to_ns = new->to_ns;
		t->ns += new->ns;
		return;
	}
	o->irqs[o->irq_count++ % IRQ_TIMES_KEPT] = *new;
	*last = o->irq_count;
}

/* ---- sorted */

static uint64_t oldest(uint64_t count, uint64_t room)
{
	return count > room ? count - room : 0;
}

static int order(uint32_t a, uint32_t b, uint64_t x, uint64_t y)
{
	return a != b ? (a > b) - (a < b) : (x > y) - (x < y);
}

static int by_thread(const void *a, const void *b)
{
	const struct off_cpu *x = a, *y = b;

	return order(x->thread, y->thread, x->from_ns, y->from_ns);
}

static int by_cpu(const void *a, const void *b)
{
	const struct cpu_task *x = a, *y = b;

	return order(x->cpu, y->cpu, x->from_ns, y->from_ns);
}

static int by_cpu_of_irq(const void *a, const void *b)
{
	const struct irq_time *x = a, *y = b;

	return order(x->cpu, y->cpu, x->from_ns, y->from_ns);
}

/* A copy of the last `room` of `all` things that were put into a ring. */
static void *sorted(const void *ring, size_t size, uint64_t all, uint64_t room,
	int (*compare)(const void *, const void *), size_t *count)
{
	const uint64_t first = oldest(all, room);
	char *copy = calloc(all - first + 1, size);

	*count = copy ? all - first : 0;
	for (size_t i = 0; i < *count; i++)
		memcpy(copy + i * size, (const char *)ring + (first + i) % room * size, size);
	if (copy)
		qsort(copy, *count, size, compare);
	return copy;
}

struct off_cpu *off_cpu_sorted(const struct off_cpus *o, size_t *count)
{
	return sorted(o->kept, sizeof(*o->kept), o->count, OFF_CPU_KEPT, by_thread, count);
}

struct cpu_task *cpu_tasks_sorted(const struct off_cpus *o, size_t *count)
{
	return sorted(o->tasks, sizeof(*o->tasks), o->task_count, CPU_TASKS_KEPT, by_cpu, count);
}

struct irq_time *irq_times_sorted(const struct off_cpus *o, size_t *count)
{
	return sorted(
		o->irqs, sizeof(*o->irqs), o->irq_count, IRQ_TIMES_KEPT, by_cpu_of_irq, count);
}

/* ---- what a thread had */

/* The first one that ends at ns or later: those of a thread do not overlap. */
static size_t first_after(const struct off_cpu *sorted, size_t count, uint32_t thread, uint64_t ns)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t at = low + (high - low) / 2;
		const struct off_cpu *v = &sorted[at];

		if (v->thread < thread || (v->thread == thread && v->to_ns && v->to_ns < ns))
			low = at + 1;
		else
			high = at;
	}
	return low;
}

struct off_cpu_sum off_cpu_between(const struct off_cpu *sorted, size_t count, uint32_t thread,
	uint64_t from_ns, uint64_t to_ns)
{
	struct off_cpu_sum s = {0};

	for (size_t k = first_after(sorted, count, thread, from_ns);
		k < count && sorted[k].thread == thread && sorted[k].from_ns <= to_ns; k++) {
		const struct off_cpu *v = &sorted[k];
		uint64_t a = v->from_ns > from_ns ? v->from_ns : from_ns;
		uint64_t b = v->to_ns && v->to_ns < to_ns ? v->to_ns : to_ns;

		s.faults += v->how == OFF_FAULTED;
		if (v->how == OFF_FAULTED || b <= a)
			continue;
		s.ns[v->how] += b - a;
		if (v->how == OFF_WAITED && b - a > s.wait.to_ns - s.wait.from_ns)
			s.wait = (struct off_cpu){a, b, thread, v->cpu, v->how};
	}
	return s;
}

/* ---- the tasks that had its CPU */

/* The last one that begins at ns or before, or the first one. */
static size_t running_at(const struct cpu_task *sorted, size_t count, uint32_t cpu, uint64_t ns)
{
	const struct cpu_task key = {.cpu = cpu, .from_ns = ns};
	size_t low = 0, high = count;

	while (low < high) {
		size_t at = low + (high - low) / 2;

		if (by_cpu(&sorted[at], &key) <= 0)
			low = at + 1;
		else
			high = at;
	}
	return low && sorted[low - 1].cpu == cpu ? low - 1 : low;
}

#define TASKS_MAX 64 /* in a gap; those that come after as many others are not named */

static unsigned add_time(struct taker *all, unsigned n, const struct cpu_task *task, uint64_t ns)
{
	unsigned k = 0;

	while (k < n && all[k].task->tid != task->tid)
		k++;
	if (k == TASKS_MAX)
		return n;
	if (k == n)
		all[n++] = (struct taker){.task = task};
	all[k].ns += ns;
	return n;
}

static int longer_first(const void *a, const void *b)
{
	const struct taker *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

unsigned cpu_takers(const struct cpu_task *sorted, size_t count, const struct off_cpu *wait,
	struct taker takers[TAKERS_MAX])
{
	const uint64_t from_ns = wait->from_ns, to_ns = wait->to_ns;
	const uint32_t cpu = wait->cpu;
	struct taker all[TASKS_MAX];
	unsigned n = 0;

	for (size_t k = running_at(sorted, count, cpu, from_ns);
		k < count && sorted[k].cpu == cpu && sorted[k].from_ns < to_ns; k++) {
		bool last = k + 1 == count || sorted[k + 1].cpu != cpu;
		uint64_t a = sorted[k].from_ns > from_ns ? sorted[k].from_ns : from_ns;
		uint64_t b = !last && sorted[k + 1].from_ns < to_ns ? sorted[k + 1].from_ns : to_ns;

		if (sorted[k].tid && b > a)
			n = add_time(all, n, &sorted[k], b - a);
	}
	qsort(all, n, sizeof(*all), longer_first);
	n = n < TAKERS_MAX ? n : TAKERS_MAX;
	memcpy(takers, all, n * sizeof(*all));
	return n;
}

/* ---- the interrupts of its CPU */

uint64_t irq_ns_between(const struct irq_time *sorted, size_t count, uint32_t cpu, uint64_t from_ns,
	uint64_t to_ns, char name[IRQ_NAME])
{
	size_t low = 0, high = count;
	uint64_t sum = 0, most = 0;

	*name = '\0';
	/* The first one that ends later: those of a CPU do not overlap. */
	while (low < high) {
		size_t at = low + (high - low) / 2;

		if (sorted[at].cpu < cpu || (sorted[at].cpu == cpu && sorted[at].to_ns <= from_ns))
			low = at + 1;
		else
			high = at;
	}
	for (; low < count && sorted[low].cpu == cpu && sorted[low].from_ns < to_ns; low++) {
		const struct irq_time *t = &sorted[low];
		uint64_t a = t->from_ns > from_ns ? t->from_ns : from_ns;
		uint64_t b = t->to_ns < to_ns ? t->to_ns : to_ns, ns;

		ns = b - a < t->ns ? b - a : t->ns;
		sum += ns;
		if (ns > most) {
			most = ns;
			memcpy(name, t->name, IRQ_NAME);
		}
	}
	return sum;
}
