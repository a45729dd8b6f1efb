/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of perf for each polling thread and for the CPU that it runs on. */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "common/array.h"
#include "common/atomics.h"
#include "kernel.h"
#include "off_cpu.h"

#define EVENTS "/sys/kernel/tracing/events/"
/* Pages of a buffer, powers of two; one more has its state. A CPU's has all that runs there: 20,000
 * switches between two snapshots. */
#define THREAD_PAGES 64
#define CPU_PAGES    512
#define FOLLOW_NS    NS_PER_S
#define WATCHED_MAX  512
#define READINGS     5 /* two clocks are read so often */

/* A thread, or a CPU with all that runs there. */
struct off_cpu_watched {
	bool is_cpu;
	uint32_t number;      /* tid in this PID namespace, or CPU */
	uint32_t own;         /* tid in the application's */
	int switches, faults; /* descriptors */
	int irqs[2 * IRQ_KINDS];
	struct perf_event_mmap_page *buffer;
	struct perf_event_mmap_page *irq_buffer; /* a flood of interrupts loses no switch */
	struct off_cpu now;                      /* from_ns 0: it has a CPU */
	/* A CPU: the interrupt that it is in, how many are, and the last one in the list. */
	struct irq_time irq;
	unsigned depth;
	uint64_t last_irq;
};

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- events */

/* A descriptor, or -errno. */
static int open_event(const struct off_cpu_watched *w, struct perf_event_attr a)
{
	long fd;

	a.size = sizeof(a);
	a.sample_period = 1;
	a.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
	a.sample_id_all = 1;
	a.use_clockid = 1;
	a.clockid = CLOCK_MONOTONIC;
	fd = syscall(SYS_perf_event_open, &a, w->is_cpu ? -1 : (pid_t)w->number,
		w->is_cpu ? (int)w->number : -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Bytes of its buffer. */
static size_t room(const struct off_cpu_watched *w)
{
	return page() * (w->is_cpu ? CPU_PAGES : THREAD_PAGES);
}

static void unwatch(struct off_cpu_watched *w)
{
	if (w->buffer)
		munmap(w->buffer, page() + room(w));
	if (w->irq_buffer)
		munmap(w->irq_buffer, page() + room(w));
	for (unsigned k = 0; k < 2 * IRQ_KINDS; k++)
		if (w->irqs[k] >= 0)
			close(w->irqs[k]);
	if (w->faults >= 0)
		close(w->faults);
	if (w->switches >= 0)
		close(w->switches);
}

/* Maps the buffer of an event. NULL: it is refused. */
static struct perf_event_mmap_page *map(const struct off_cpu_watched *w, int fd)
{
	void *buffer = mmap(NULL, page() + room(w), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return buffer == MAP_FAILED ? NULL : buffer;
}

/* Without them an interrupt counts as running. */
static void open_irqs(const struct off_cpu_format *format, struct off_cpu_watched *w)
{
	int first = -1;

	for (unsigned k = 0; k < 2 * IRQ_KINDS; k++) {
		if (!format->irq[k / 2][k % 2])
			continue;
		w->irqs[k] = open_event(w, (struct perf_event_attr){.type = PERF_TYPE_TRACEPOINT,
						   .config = format->irq[k / 2][k % 2]});
		if (w->irqs[k] < 0)
			continue;
		if (first >= 0) {
			(void)ioctl(w->irqs[k], PERF_EVENT_IOC_SET_OUTPUT, first);
			continue;
		}
		first = w->irqs[k];
		w->irq_buffer = map(w, first);
	}
}

/* 0 or -errno; the caller calls unwatch() in any case. */
static int open_events(const struct off_cpu_format *format, struct off_cpu_watched *w)
{
	w->switches = open_event(w, (struct perf_event_attr){.type = PERF_TYPE_TRACEPOINT,
					    .config = format->id,
					    .context_switch = !w->is_cpu});
	if (w->switches < 0)
		return w->switches;
	w->buffer = map(w, w->switches);
	if (!w->buffer)
		return -ENOMEM;
	if (w->is_cpu) {
		open_irqs(format, w);
		return 0;
	}
	/* Without them a fault counts as running. */
	w->faults = open_event(w, (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					  .config = PERF_COUNT_SW_PAGE_FAULTS});
	if (w->faults >= 0)
		(void)ioctl(w->faults, PERF_EVENT_IOC_SET_OUTPUT, w->switches);
	return 0;
}

/* 0 or -errno. */
static int read_event(const char *name, char *text, size_t size)
{
	char path[128];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), EVENTS "%s/format", name);
	file = fopen(path, "re");
	*text = '\0';
	if (!file)
		return -errno;
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
	return 0;
}

/* 0 or -errno. */
static int read_format(struct off_cpu_format *format)
{
	static const char *const irqs[] = {"irq/irq_handler_entry", "irq/irq_handler_exit",
		"irq/softirq_entry", "irq/softirq_exit", "irq_vectors/local_timer_entry",
		"irq_vectors/local_timer_exit"};
	char text[4096];
	int ret = read_event("sched/sched_switch", text, sizeof(text));

	if (ret)
		return ret;
	if (!off_cpu_format_parse(text, format))
		return -ENOTSUP;
	for (unsigned k = 0; k < 2 * IRQ_KINDS; k++)
		if (!read_event(irqs[k], text, sizeof(text)))
			format->irq[k / 2][k % 2] =
				irq_format_parse(text, (enum irq_kind)(k / 2), k % 2 == 0);
	return 0;
}

/* 0 or -errno. */
static int watch(struct off_cpus *o, const struct off_cpu_watched *what)
{
	struct off_cpu_watched *w =
		o->watched_count < WATCHED_MAX ? rt_array_add(o->watched, o->watched_count) : NULL;
	int ret = 0;

	if (!w)
		return -ENOMEM;
	*w = *what;
	w->switches = w->faults = -1;
	memset(w->irqs, 0xff, sizeof(w->irqs));
	if (!o->format.id)
		ret = read_format(&o->format);
	if (!ret)
		ret = open_events(&o->format, w);
	if (ret) {
		unwatch(w);
		o->watched_count--;
	}
	return ret;
}

/* ---- which threads and CPUs */

static bool is_watched(const struct off_cpus *o, bool is_cpu, uint32_t number)
{
	for (unsigned k = 0; k < o->watched_count; k++)
		if (o->watched[k].is_cpu == is_cpu && o->watched[k].number == number)
			return true;
	return false;
}

/* The thread of a snapshot; NULL: it does not poll. */
static const struct ringtap_thread_stats *poller(
	const struct ringtap_snapshot *s, uint32_t own, uint32_t *index)
{
	for (*index = 0; own && *index < s->thread_count; ++*index) {
		const struct ringtap_thread_stats *t = ringtap_snapshot_thread(s, *index);

		if (t->tid == own && t->alive)
			return t;
	}
	return NULL;
}

static void forget_ended(struct off_cpus *o, const struct ringtap_snapshot *s)
{
	uint32_t index;

	for (unsigned k = 0; k < o->watched_count; k++) {
		if (o->watched[k].is_cpu || poller(s, o->watched[k].own, &index))
			continue;
		unwatch(&o->watched[k]);
		o->watched[k--] = o->watched[--o->watched_count];
	}
}

/* A thread of the application, if it polls, and its CPU. 0 or -errno. */
static int follow_thread(struct off_cpus *o, const struct ringtap_snapshot *s, const char *name)
{
	struct off_cpu_watched cpu = {.is_cpu = true},
			       w = {.number = (uint32_t)strtoul(name, NULL, 10)};
	const struct ringtap_thread_stats *t;
	int ret = 0;

	w.own = kernel_own_tid(name);
	t = poller(s, w.own, &w.now.thread);
	if (!t)
		return 0;
	cpu.number = t->cpu;
	if (!is_watched(o, false, w.number)) {
		ret = watch(o, &w);
		o->since_ns = 0; /* what it did before is not known */
	}
	if (!ret && !is_watched(o, true, cpu.number))
		ret = watch(o, &cpu);
	return ret == -ESRCH ? 0 : ret;
}

static void follow(struct off_cpus *o, const struct ringtap_snapshot *s, uint32_t host_pid)
{
	char path[64];
	struct dirent *e;
	DIR *d;
	int ret = 0;

	forget_ended(o, s);
	snprintf(path, sizeof(path), "/proc/%u/task", host_pid);
	d = host_pid ? opendir(path) : NULL;
	while (d && !ret && (e = readdir(d)))
		ret = follow_thread(o, s, e->d_name);
	if (d)
		closedir(d);
	/* Missing records would be drawn as running. */
	if (ret)
		off_cpu_free(o);
	o->refused = ret;
	if (o->watched_count && !o->since_ns)
		o->since_ns = now_ns(CLOCK_REALTIME);
}

/* ---- records */

static void keep(struct off_cpus *o, const struct off_cpu *v)
{
	o->kept[o->count++ % OFF_CPU_KEPT] = *v;
}

static void take_cpu(struct off_cpus *o, const struct off_cpu_record *r, uint64_t real_ns)
{
	struct cpu_task *t = &o->tasks[o->task_count++ % CPU_TASKS_KEPT];

	*t = (struct cpu_task){.from_ns = r->mono_ns + real_ns, .cpu = r->cpu, .tid = r->task};
	memcpy(t->name, r->name, sizeof(t->name));
}

static void take_irq(
	struct off_cpus *o, struct off_cpu_watched *w, const struct irq_record *r, uint64_t real_ns)
{
	if (r->begins) {
		if (w->depth++)
			return;
		w->irq = (struct irq_time){.from_ns = r->mono_ns + real_ns, .cpu = w->number};
		memcpy(w->irq.name, r->name, sizeof(w->irq.name));
	} else if (w->depth && !--w->depth) {
		w->irq.to_ns = r->mono_ns + real_ns;
		w->irq.ns = w->irq.to_ns - w->irq.from_ns;
		irq_time_add(o, &w->last_irq, &w->irq);
	}
}

static void take_thread(struct off_cpus *o, struct off_cpu_watched *w,
	const struct off_cpu_record *r, uint64_t real_ns)
{
	struct off_cpu v = {.from_ns = r->mono_ns + real_ns,
		.thread = w->now.thread,
		.cpu = r->cpu,
		.how = r->how};

	if (r->in) {
		w->now.to_ns = v.from_ns;
		if (w->now.from_ns)
			keep(o, &w->now);
		w->now = (struct off_cpu){.thread = v.thread};
	} else if (v.how == OFF_FAULTED) {
		v.to_ns = v.from_ns;
		keep(o, &v);
	} else {
		w->now = v;
	}
}

static void take_all(struct off_cpus *o, struct off_cpu_watched *w,
	struct perf_event_mmap_page *buffer, uint64_t real_ns)
{
	const size_t bytes = room(w);
	const uint8_t *data = (const uint8_t *)buffer + page();
	/* Pairs with the kernel's barrier before it stores data_head. */
	uint64_t head = rt_load_acquire(&buffer->data_head), tail = buffer->data_tail;

	while (tail < head) {
		uint8_t record[256];
		struct perf_event_header h;
		struct off_cpu_record r;
		struct irq_record irq;

		for (size_t k = 0; k < sizeof(record) && tail + k < head; k++)
			record[k] = data[(tail + k) % bytes];
		memcpy(&h, record, sizeof(h));
		if (h.size < sizeof(h))
			break;
		if (buffer == w->irq_buffer) {
			if (h.type == PERF_RECORD_LOST)
				w->depth = 0;
			if (irq_record_parse(&o->format, record, sizeof(record), &irq))
				take_irq(o, w, &irq, real_ns);
			tail += h.size;
			continue;
		}
		/* Records without room in the buffer would be drawn as running. */
		if (h.type == PERF_RECORD_LOST)
			o->since_ns = now_ns(CLOCK_REALTIME);
		if (off_cpu_record_parse(&o->format, record, sizeof(record), &r)) {
			if (w->is_cpu)
				take_cpu(o, &r, real_ns);
			else
				take_thread(o, w, &r, real_ns);
		}
		tail += h.size;
	}
	/* Pairs with the kernel's control dependency on data_tail. */
	rt_store_release(&buffer->data_tail, head);
}

/* CLOCK_REALTIME less CLOCK_MONOTONIC. Between two readings this thread may lose its CPU. */
static uint64_t real_offset(void)
{
	uint64_t offset = 0, least = UINT64_MAX;

	for (int i = 0; i < READINGS; i++) {
		uint64_t before = now_ns(CLOCK_MONOTONIC), real = now_ns(CLOCK_REALTIME);
		uint64_t took = now_ns(CLOCK_MONOTONIC) - before;

		if (took < least)
			offset = real - before - took / 2;
		least = took < least ? took : least;
	}
	return offset;
}

void off_cpu_step(struct off_cpus *o, const struct ringtap_snapshot *s, uint32_t host_pid)
{
	uint64_t mono = now_ns(CLOCK_MONOTONIC), real_ns = real_offset();

	if (o->refused)
		return;
	if (!o->kept)
		o->kept = calloc(OFF_CPU_KEPT, sizeof(*o->kept));
	if (!o->tasks)
		o->tasks = calloc(CPU_TASKS_KEPT, sizeof(*o->tasks));
	if (!o->irqs)
		o->irqs = calloc(IRQ_TIMES_KEPT, sizeof(*o->irqs));
	if (!o->kept || !o->tasks || !o->irqs)
		return;
	for (unsigned k = 0; k < o->watched_count; k++) {
		struct off_cpu_watched *w = &o->watched[k];

		take_all(o, w, w->buffer, real_ns);
		if (w->irq_buffer)
			take_all(o, w, w->irq_buffer, real_ns);
	}
	if (o->watched_count && mono - o->followed_ns < FOLLOW_NS)
		return;
	o->followed_ns = mono;
	follow(o, s, host_pid);
}

void off_cpu_free(struct off_cpus *o)
{
	while (o->watched_count)
		unwatch(&o->watched[--o->watched_count]);
	free(o->watched);
	free(o->kept);
	free(o->tasks);
	free(o->irqs);
	*o = (struct off_cpus){0};
}
