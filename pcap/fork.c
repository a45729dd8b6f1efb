/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that share a handle after a fork(). A ring has one reader: two would publish different
 * tails, and the application would end the session.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handle.h"

uint32_t fork_generation = 1;

static void in_child(void)
{
	fork_generation++;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

int fork_prepare(struct handle *h)
{
	void *p = mmap(
		NULL, sizeof(*h->owner), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return handle_fail(h, PCAP_ERROR, "mmap: %s", strerror(errno));
	h->owner = p;
	h->generation = 0; /* the first read calls fork_claim() */
	return 0;
}

void fork_release(struct handle *h)
{
	if (h->owner)
		munmap(h->owner, sizeof(*h->owner));
	h->owner = NULL;
}

bool fork_owns(const struct handle *h)
{
	return h->owner && rt_load(h->owner) == getpid();
}

bool fork_claim(struct handle *h)
{
	int32_t self = getpid(), owner = rt_load(h->owner);

	if (owner != self && owner && (!kill(owner, 0) || errno != ESRCH)) {
		handle_fail(h, 0, "process %d reads from this handle", owner);
		return false;
	}
	if (owner != self && !rt_cas(h->owner, &owner, self)) {
		handle_fail(h, 0, "process %d reads from this handle", owner);
		return false;
	}
	h->generation = fork_generation;
	return true;
}
