/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that a command starts. None outlives it, even if it is killed: the kernel then sends a
 * signal to the child.
 */
#ifndef RINGTAP_BASE_CHILD_H
#define RINGTAP_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Output that was read. */
#define CHILD_TEXT_MAX (64u << 20) /* bytes; a child that writes more finds its pipe closed */
struct child_text {
	char *data; /* zero-terminated; NULL: nothing yet */
	size_t len, room;
};
void child_text_free(struct child_text *t);

enum {
	CHILD_READ_OUT = 1,
	CHILD_READ_ERR = 2,
	CHILD_PASS_ERR = 4,  /* what is read of standard error goes to ours, but for the notice */
	CHILD_STORE_OUT = 8, /* standard output goes to memory and is read at the end, and
			      * standard error is lost: an unwatched child never waits */
	CHILD_PASS_OUT = 32, /* the same for what is read of standard output, and all of it: the
			      * child waits for the reader of ours, as if it wrote there itself */
	CHILD_REPEAT_STOP = 16, /* child_stop() sends its signal five times a second: bpftrace
				 * misses one that does not find it waiting */
};

struct child_config {
	unsigned flags;
	int death_signal; /* sent to the child by the kernel if this process ends; 0: SIGKILL */
	void (*prepare)(void); /* called in the child before it becomes the program; or NULL */
};

struct child {
	struct child_config cfg;
	pid_t pid;                 /* 0: not started */
	int pid_fd, fd[2];         /* fd: standard output and error; -1: ours */
	struct child_text text[2]; /* what came from them */
	const char *notice; /* a line of its output that is not passed on; NULL: none, or it came */
	bool ended;
	int status; /* status of waitpid(), once ended */
};
#define CHILD_NONE                             \
	{                                      \
		.pid_fd = -1, .fd = { -1, -1 } \
	} /* initialises one that is not started */

/* Starts argv[0], found in PATH, in a process group of its own. It reads nothing from the terminal,
 * and may write to it. 0; -ENOENT: no such program; -errno. Free with child_free() in any case. */
int child_start(struct child *c, const char *const argv[], const struct child_config *cfg);
/* Reads its output and whether it has ended. Waits at most ns for it, or for one of the descriptors
 * (-1: none) to become readable. */
void child_watch(struct child *c, int fd1, int fd2, uint64_t ns);
/* Sends the signal and waits; kills it after patience_ns. True if that was not needed. */
bool child_stop(struct child *c, int signal, uint64_t patience_ns);
/* Kills it if it runs. */
void child_free(struct child *c);
/* How it ended: "status 3", "signal 9 (Killed)". */
#define CHILD_END_LEN 64
const char *child_end(const struct child *c, char buf[CHILD_END_LEN]);
/* Whether PATH has such a program. */
bool child_found(const char *program);

#endif
