/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's files about an application's threads: proc(5), /proc/PID/task. */
#ifndef RINGTAP_MEASURE_KERNEL_H
#define RINGTAP_MEASURE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel_thread {
	uint32_t tid; /* in the application's PID namespace */
	char name[16];
	char state; /* R: runs or waits for a CPU, S, D: sleeps, T: stopped, t: traced, … */
	long call;  /* number of the system call that it sleeps in; -1: none, or not shown */
};

/* Threads of process pid, in the PID namespace of the caller. The caller frees it. NULL: not shown.
 */
struct kernel_thread *kernel_threads(pid_t pid, unsigned *count);
/* The number of a thread in the application's PID namespace; 0: it has ended. tid: in ours. */
uint32_t kernel_own_tid(const char *tid);

/* The name of a thread, by its number in the application's PID namespace; "": not shown. pid: in
 * ours. */
void kernel_thread_name(char name[16], pid_t pid, uint32_t own_tid);

/* "running", "blocked in futex()". */
#define KERNEL_TEXT_LEN 96
char *kernel_state(char buf[KERNEL_TEXT_LEN], const struct kernel_thread *t);

#endif
