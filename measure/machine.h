/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's view of CPUs, NUMA nodes and threads, in /proc and /sys: readable by ordinary
 * users and in containers. What is not shown is unknown. */
#ifndef RINGTAP_MEASURE_MACHINE_H
#define RINGTAP_MEASURE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MACHINE_NODES 64

/* Folder with proc and sys; "", the root. Unit tests have one of their own. */
extern const char *machine_root;

/* First line of a file below that folder, without its end; False: there is none. */
bool machine_line(char *line, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same as a number, at least 0. */
bool machine_number(uint64_t *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether a list as "0-3,8" has n. */
bool machine_listed(const char *list, uint32_t n);
/* The node of a CPU; -1: unknown. */
int machine_node(uint32_t cpu);

struct machine_task {
	uint32_t tid;    /* in the application's PID namespace */
	uint32_t policy; /* SCHED_… */
	uint64_t faults; /* page faults */
};

/* Counters at one time. */
struct machine_counts {
	uint64_t mono_ns;
	char *stat, *interrupts; /* files of /proc; NULL: not shown */
	struct machine_task *tasks;
	unsigned task_count;
};

/* Threads are those of process pid, in the PID namespace of the caller. */
void machine_count(struct machine_counts *c, pid_t pid);
void machine_counts_free(struct machine_counts *c);
/* NULL: not shown. */
const struct machine_task *machine_task(const struct machine_counts *c, uint32_t tid);

/* A CPU between two counts. NAN: unknown. */
struct machine_load {
	double busy, stolen;      /* shares of the time, 0 … 1 */
	double ticks, interrupts; /* timer interrupts and those of devices, a second */
	char most[48];            /* the device with most of them */
};
/* busy and stolen; the rest is unknown. */
void machine_load(struct machine_load *l, const struct machine_counts *from,
	const struct machine_counts *to, uint32_t cpu);
/* Adds ticks, interrupts and most. */
void machine_interrupts(struct machine_load *l, const struct machine_counts *from,
	const struct machine_counts *to, uint32_t cpu);

/* Bytes of huge pages of a process by node; 0: not shown, or it has none. */
void machine_huge_pages(pid_t pid, uint64_t bytes[MACHINE_NODES]);

#endif
