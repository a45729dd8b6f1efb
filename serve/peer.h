/* SPDX-License-Identifier: BSD-3-Clause */
/* The other end of a connection: where it is, and which user has it. */
#ifndef RINGTAP_SERVE_PEER_H
#define RINGTAP_SERVE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PEER_NAME_LEN     64
#define PEER_UNKNOWN_USER ((uid_t)-1)

/* Addresses of IPv4 are mapped ones of IPv6. */
struct peer {
	bool here; /* on this host, in this network namespace */
	uid_t uid; /* with here; PEER_UNKNOWN_USER: it has ended, or the kernel cannot tell */
	uint8_t address[16];      /* without here */
	char name[PEER_NAME_LEN]; /* "ADDRESS:PORT", or "process PID" */
};

struct peer_network {
	uint8_t address[16];
	unsigned bits;
};

/* Reads the peer of a connected socket, TCP or Unix. 0 or -errno. */
int peer_find(int fd, struct peer *p);
/* Parses ADDRESS[/BITS]. 0 or -EINVAL. */
int peer_network_parse(const char *text, struct peer_network *n);
bool peer_is_in(const struct peer *p, const struct peer_network *n);

#endif
