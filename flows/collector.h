/* SPDX-License-Identifier: BSD-3-Clause */
/* A flow collector that messages are sent to, over UDP or TCP. Sending never waits: what the kernel
 * has no room for is lost, and counted. */
#ifndef RINGTAP_FLOWS_COLLECTOR_H
#define RINGTAP_FLOWS_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire.h"

struct collector {
	const char *text; /* as it was given */
	int fd;           /* -1: there is no connection, or it is not open */
	bool stream;      /* TCP */
	bool connecting;
	struct sockaddr_storage address;
	socklen_t address_len;
	uint64_t sent, not_sent; /* messages */
	uint32_t connections;    /* rises with each; what the last one has said is forgotten */
	uint64_t retry_ns;       /* CLOCK_MONOTONIC: TCP is not connected again before */
	size_t rest_len;         /* bytes of a message that TCP has not taken yet */
	uint8_t rest[WIRE_BYTES];
};

/* Opens a socket to [tcp:]HOST[:PORT] of an option; the host is resolved once. 0, or -EINVAL or
 * -errno after printing why. Close in any case, once *c is zeros with fd -1. */
int collector_open(struct collector *c, const char *command, const char *option, const char *text,
	const char *port, bool tcp_allowed);
void collector_close(struct collector *c);

/* Connects again where that is needed, and goes on with what is left. False: nothing can be sent.
 */
bool collector_ready(struct collector *c);
void collector_send(struct collector *c, const struct wire *message);
/* Waits until a message that TCP has not taken whole has left, timeout_ms at most. */
void collector_drain(struct collector *c, int timeout_ms);
/* The address that messages come from: 4 or 16 bytes. Returns how many; 0: it is not known. */
size_t collector_source(const struct collector *c, uint8_t address[16]);

#endif
