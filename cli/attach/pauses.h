/* SPDX-License-Identifier: BSD-3-Clause */
/* How long threads of a process wait for a CPU while something is done to it: the kernel counts the
 * time for which a thread could run and did not (schedstat, at each switch). */
#ifndef RINGTAP_CLI_ATTACH_PAUSES_H
#define RINGTAP_CLI_ATTACH_PAUSES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct pause_thread {
	pid_t tid;
	char name[16];  /* as the kernel has it: any bytes */
	bool running;   /* or it waits for a CPU */
	bool waits;     /* for a CPU: wait_ns lacks that; after pauses_end() for a second */
	uint64_t turns; /* on a CPU, so far */
	uint64_t sleeps, wait_ns; /* so far; after pauses_end() meanwhile */
};

struct pauses {
	struct pause_thread *threads;
	size_t count; /* after pauses_end() those that polled: that never slept */
	int error;    /* -errno: nothing is known */
};

/* tasks: a folder such as /proc/1/task. To be freed by pauses_free(). */
void pauses_begin(struct pauses *p, const char *tasks);
/* Waits a second at most, for threads that wait. */
void pauses_end(struct pauses *p, const char *tasks);
void pauses_free(struct pauses *p);

void pauses_print(const struct pauses *p, FILE *f);
/* An array of threads; null: unknown. */
json_t *pauses_json(const struct pauses *p);

#endif
