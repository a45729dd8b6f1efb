/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of `ringtap host`, and the command line of the program that it starts. */
#ifndef RINGTAP_CLI_HOST_HOST_H
#define RINGTAP_CLI_HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "netdev.h"

#define HOST_IFACES_MAX 32
#define HOST_CPUS_MAX   64
#define HOST_NAME_MAX   64     /* RINGTAP_NAME_LEN */
#define HOST_FRAME_MAX  262144 /* tcpdump's */

enum host_driver { HOST_AF_PACKET, HOST_AF_XDP };

/* Texts are argv's. */
struct host_config {
	enum host_driver driver;
	const char *ifaces[HOST_IFACES_MAX];
	struct netdev devs[HOST_IFACES_MAX];
	unsigned iface_count;
	const char *name;        /* NULL: made of the interfaces' */
	const char *cpus;        /* NULL: one thread, anywhere */
	uint32_t queues;         /* 0: default */
	uint32_t frame;          /* bytes; 0: default */
	uint64_t buffer, memory; /* bytes */
	uint64_t duration_ns;    /* 0: until a signal */
	bool no_promiscuous, busy_poll, huge_pages, verbose;
	/* Filled in by host_check(). */
	char own_name[HOST_NAME_MAX];
	char all[HOST_IFACES_MAX * 18]; /* all interfaces, for messages */
	unsigned cpu_list[HOST_CPUS_MAX];
	unsigned cpu_count;
};

/* Checks interfaces, names and permissions. Prints what is wrong: -EINVAL is for the command line.
 */
int host_check(struct host_config *h);

/* Bytes that DPDK will take. */
uint64_t host_memory(const struct host_config *h);

struct host_args {
	char *argv[64 + HOST_IFACES_MAX];
	int argc;
};

/* The command line for host_path(). 0 or -ENOMEM, printed. */
int host_args(const struct host_config *h, struct host_args *out);
void host_args_free(struct host_args *a);

#endif
