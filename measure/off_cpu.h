/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When polling threads had no CPU, and which tasks had it: switches of the scheduler on the CPUs
 * of these threads, and their page faults, by perf, where the kernel allows it.
 */
#ifndef RINGTAP_MEASURE_OFF_CPU_H
#define RINGTAP_MEASURE_OFF_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ringtap/monitor.h"

#define OFF_CPU_KEPT   (1u << 15)
#define CPU_TASKS_KEPT (1u << 17)
#define IRQ_TIMES_KEPT (1u << 16)

struct off_cpu_watched;

enum off_cpu_how {
	OFF_WAITED,  /* it could run, another task did */
	OFF_SLEPT,   /* in a system call */
	OFF_BLOCKED, /* in the kernel, for a disk or a page */
	OFF_STOPPED, /* by a signal or a debugger */
	OFF_FAULTED, /* a page fault; it takes no time of its own here */
	OFF_HOWS
};

/* A time in which a thread had no CPU. */
struct off_cpu {
	uint64_t from_ns, to_ns; /* since the epoch; to_ns 0: it lasts */
	uint32_t thread;         /* index in snapshots */
	uint32_t cpu;            /* that it had before */
	enum off_cpu_how how;
};

/* A task that begins to run on a CPU, until the next one does. */
struct cpu_task {
	uint64_t from_ns;
	uint32_t cpu;
	uint32_t tid; /* in the first PID namespace; 0: the CPU was idle */
	char name[16];
};

/* Interrupts of a CPU, with none of another name and no pause of IRQ_PAUSE_NS between them. Those
 * that interrupt another one are part of it. */
#define IRQ_PAUSE_NS 20000
#define IRQ_NAME     20
struct irq_time {
	uint64_t from_ns, to_ns;
	uint64_t ns; /* without the pauses */
	uint32_t cpu;
	char name[IRQ_NAME];
};

enum irq_kind { IRQ_HARD, IRQ_SOFT, IRQ_TIMER, IRQ_KINDS };

/* Where the fields of a switch are in a record of perf; id 0: not known yet. Then the ids of
 * tracepoints at which interrupts begin and end, 0: the kernel has none. */
struct off_cpu_format {
	unsigned id, state, name, task;
	unsigned irq[IRQ_KINDS][2];
};

/* Number n of a list is at n modulo what is kept of it. */
struct off_cpus {
	struct off_cpu_format format;
	struct off_cpu_watched *watched; /* threads and CPUs */
	unsigned watched_count;
	struct off_cpu *kept;
	struct cpu_task *tasks;
	struct irq_time *irqs;
	uint64_t count, task_count, irq_count; /* ever */
	uint64_t since_ns;                     /* all of them are known since then; 0: none are */
	uint64_t followed_ns;                  /* CLOCK_MONOTONIC */
	int refused; /* 0, or -errno of the kernel: it is not tried again */
};

/* Takes what has happened, and looks for new threads of a snapshot, which has just been taken.
 * host_pid: of the application, in our PID namespace; 0: not visible. */
void off_cpu_step(struct off_cpus *o, const struct ringtap_snapshot *s, uint32_t host_pid);
void off_cpu_free(struct off_cpus *o);

/* ---- for a page */

/* Copies by thread and time, and by CPU and time, which the caller frees. */
struct off_cpu *off_cpu_sorted(const struct off_cpus *o, size_t *count);
struct cpu_task *cpu_tasks_sorted(const struct off_cpus *o, size_t *count);
struct irq_time *irq_times_sorted(const struct off_cpus *o, size_t *count);

/* Shares of a thread's time. */
struct off_cpu_sum {
	uint64_t ns[OFF_HOWS], faults;
	struct off_cpu wait; /* its longest one, as far as it lies in that time */
};
struct off_cpu_sum off_cpu_between(const struct off_cpu *sorted, size_t count, uint32_t thread,
	uint64_t from_ns, uint64_t to_ns);

/* The tasks that had most of a wait, longest first: their number. */
#define TAKERS_MAX 3
struct taker {
	uint64_t ns;
	const struct cpu_task *task;
};
unsigned cpu_takers(const struct cpu_task *sorted, size_t count, const struct off_cpu *wait,
	struct taker takers[TAKERS_MAX]);

/* Time that interrupts of a CPU took; name: of those that took most, if any. */
uint64_t irq_ns_between(const struct irq_time *sorted, size_t count, uint32_t cpu, uint64_t from_ns,
	uint64_t to_ns, char name[IRQ_NAME]);

/* ---- what perf writes */

/* Reads a file format of tracefs. False: a field is missing or has another size. */
bool off_cpu_format_parse(const char *text, struct off_cpu_format *out);

struct off_cpu_record {
	uint64_t mono_ns;
	uint32_t cpu;
	bool in; /* the thread has a CPU again; else it is out, or has faulted */
	enum off_cpu_how how;
	uint32_t task; /* that runs instead */
	char name[16];
};
/* False: it says nothing, or is cut. */
bool off_cpu_record_parse(const struct off_cpu_format *format, const void *record, size_t size,
	struct off_cpu_record *out);

/* The id in a file format of tracefs; 0: its field is not where records have it. */
unsigned irq_format_parse(const char *text, enum irq_kind kind, bool begins);

struct irq_record {
	uint64_t mono_ns;
	bool begins;
	char name[IRQ_NAME];
};
/* False: another tracepoint, or cut. */
bool irq_record_parse(const struct off_cpu_format *format, const void *record, size_t size,
	struct irq_record *out);
/* Adds an interrupt; last: number of the CPU's last one and 1, for the next call. */
void irq_time_add(struct off_cpus *o, uint64_t *last, const struct irq_time *new);

#endif
