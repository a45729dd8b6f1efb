/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VPP's interfaces, by its own names and counters: which of them are ports of DPDK, and which pass
 * packets that no hook sees.
 */
#ifndef RINGTAP_COUNTED_INTERFACES_H
#define RINGTAP_COUNTED_INTERFACES_H

#include "counted.h"

#define COUNTED_INTERFACES_MAX 256
#define COUNTED_NO_PORT        UINT32_MAX
#define COUNTED_INTERFACES_NS  4000000000ull /* for all applications that are VPP together */

struct counted_interface {
	char name[COUNTED_NAME_LEN]; /* printable ASCII */
	/* Its driver: "DPDK", or one of VPP's; NULL: unknown, as the name may be configured. */
	const char *kind;
	uint32_t port; /* ethdev's; COUNTED_NO_PORT: none, or unknown */
	uint64_t rx, tx;
	double rx_pps, tx_pps; /* NAN: it was not there before */
};

/* Without those that VPP makes from others, such as tunnels and loopbacks. */
struct counted_interfaces {
	struct counted counted; /* source NULL: the program is not VPP; no list */
	uint64_t read_ns;       /* CLOCK_MONOTONIC; 0: not read */
	size_t count, more;     /* more: are not in the list */
	size_t named;           /* ports that counted_interfaces_match() has not found */
	struct counted_interface list[COUNTED_INTERFACES_MAX];
};

/* Reads them, if the program is VPP: as counted_begin(). NULL: it is not, or there is no memory.
 * *left_ns: time for all applications together, of which the wait is subtracted: programs that only
 * pretend to be VPP, in any number, must not hold up the caller. */
struct counted_interfaces *counted_interfaces_begin(
	const char *program, pid_t pid, pid_t own_pid, uint64_t *left_ns);
/* Reads them again, for rates. */
void counted_interfaces_end(struct counted_interfaces *c, uint64_t *left_ns);
/* Finds the interface of a port of DPDK, by the name that VPP gives it unless one is configured. */
void counted_interfaces_match(struct counted_interfaces *c, uint32_t port, const char *device);
/* Interfaces without a port. Writes that a recording lacks their packets; "": there are none. */
size_t counted_interfaces_outside(const struct counted_interfaces *c, char text[160]);
void counted_interfaces_free(struct counted_interfaces *c);

/* An interface that VPP reports; other names, and those that VPP makes itself, are ignored. */
void counted_put_interface(
	struct counted_interfaces *c, const char *name, size_t len, uint64_t rx, uint64_t tx);

/* A table. Nothing if c is NULL. 0 or -errno. */
int counted_interfaces_print(const struct counted_interfaces *c, FILE *f);
/* The same; null if c is NULL. */
json_t *counted_interfaces_json(const struct counted_interfaces *c);

#endif
