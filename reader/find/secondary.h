/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secondary processes of a DPDK application. They have no telemetry. Each has a socket for DPDK's
 * messages in the runtime folder, mp_socket_PID_NUMBER, and with the probe another one,
 * ringtap.sock@PID.
 */
#ifndef RINGTAP_READER_FIND_SECONDARY_H
#define RINGTAP_READER_FIND_SECONDARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "connect.h"

struct rt_secondary {
	pid_t own_pid;     /* in its PID namespace */
	unsigned instance; /* number among those with the same process id */
	pid_t pid;         /* in that of the caller; 0: unknown */
};

/* Calls found() for each that runs in the folder, refused() with a sentence for each socket that is
 * not trusted, until one returns another value than 0, which becomes the result. */
struct rt_secondary_visitor {
	int (*found)(const struct rt_secondary *s, void *arg);
	int (*refused)(const char *why, void *arg);
	void *arg;
	uint64_t until_ns; /* CLOCK_MONOTONIC: names that are read later are left out; 0: none */
};
int rt_secondaries_each(const struct rt_folder *f, const struct rt_secondary_visitor *v);

/* The end of the time to read a folder, that of another user or of a container: there may be any
 * number of files. 0: it is one of root's, or of this user. */
uint64_t rt_folder_until(const struct rt_folder *f, bool by_process);
/* Whether this time is over. */
bool rt_is_late(uint64_t until_ns);

/* Whether an address is that of a secondary process. */
bool rt_address_is_secondary(const char *app);

/* Whether the secondary process at an address runs, with or without the probe. 0; -EHOSTDOWN: it
 * runs, but is stopped, err says how to continue it; -ENOENT: it does not; -errno. */
int rt_secondary_alive(const char *app, char *err, size_t errlen);

#endif
