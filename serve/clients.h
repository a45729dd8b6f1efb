/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of a server: none keeps others out, and what a request says of its origin. */
#ifndef RINGTAP_SERVE_CLIENTS_H
#define RINGTAP_SERVE_CLIENTS_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define CLIENTS_MAX  64 /* connections that the server accepts */
#define CLIENTS_KEPT 48 /* beyond, the oldest ends: the server accepts the next one before */

struct client {
	int fd;
	uint8_t address[16];
	uint64_t since_ns; /* monotonic; its current request began then, or later */
	bool ended;        /* the server has not closed it yet */
	bool streams; /* its answer has no end: it takes no place of others, and none takes its */
};

struct clients {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* one came or went; CLOCK_MONOTONIC */
	struct client list[CLIENTS_MAX];
	unsigned count;
	unsigned vanished_ms; /* one whose host acknowledges nothing for so long is ended: TCP
			       * itself takes a quarter of an hour */
};

/* Clients of the server, by descriptor. */
void clients_add(struct clients *all, int fd, const struct sockaddr *a, uint64_t now);
void clients_remove(struct clients *all, int fd);
void clients_served(struct clients *all, int fd, uint64_t now);
/* The answer to the client's request has no end. */
void clients_stream(struct clients *all, struct MHD_Connection *c);
/* Ends those whose request takes too long. Call it again and again. */
void clients_expire(struct clients *all, uint64_t now);
/* Ends all. The server has closed them when it returns, or a second has passed. */
void clients_end(struct clients *all);

/* MHD_OPTION_NOTIFY_CONNECTION and MHD_OPTION_NOTIFY_COMPLETED; arg: the clients. */
void clients_notify(void *arg, struct MHD_Connection *c, void **state,
	enum MHD_ConnectionNotificationCode code);
void clients_completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code);

/* Whether the client has closed its connection, which may be suspended. */
bool clients_has_gone(struct MHD_Connection *c);

/* Whether a request comes from this host, without a proxy. */
bool clients_is_local(struct MHD_Connection *c);
/* Whether the header Host, which may be NULL, is an address, a name of this host, or one of these:
 * any page may have its own name mean this host (DNS rebinding). */
bool clients_is_host(const char *header, const char *const *names, unsigned count);

#endif
