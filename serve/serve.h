/* SPDX-License-Identifier: BSD-3-Clause */
/* The HTTP server of commands that serve: one thread answers, whatever clients do. */
#ifndef RINGTAP_SERVE_SERVE_H
#define RINGTAP_SERVE_SERVE_H

#include "address.h"
#include "base/command.h"
#include "clients.h"

#define SERVE_HOSTS_MAX  16
#define SERVE_BODY_BYTES 65536 /* limit for the ignored body of a POST */

/* Configuration of a server; the caller sets it, and it lives as long as the server. */
struct serve_options {
	const char *command;                    /* for messages */
	const char *listen;                     /* "[HOST:]PORT", port 0: any */
	const char *hosts[SERVE_HOSTS_MAX + 1]; /* names of this host, and that of listen */
	unsigned host_count;
	/* Answers a request whose header Host is a name of this host, after all of it is read. */
	enum MHD_Result (*answer)(
		void *ctx, struct MHD_Connection *c, const char *url, const char *method);
	void *ctx;
	/* A request has ended, answered or not; NULL: nothing to do. */
	void (*ended)(void *ctx, struct MHD_Connection *c);
	bool posts;         /* POST has an answer; a body is read and ignored */
	unsigned silence_s; /* a connection without traffic for so long is closed; 0: 5 s */
};

struct serve {
	struct serve_options *options;
	struct MHD_Daemon *daemon;
	struct clients clients;
	char host[ADDRESS_HOST_LEN]; /* host part of --listen */
	unsigned port;
};

/* The option --host, whose value serve_add_host() takes. */
#define SERVE_HOST_OPTION(id)                                                                                \
	{                                                                                                    \
		OPTION_SET(id), OPTION_TEXT, 0, "host", "NAME", NULL, 0, 0,                                  \
			"Another name of this host, in requests to http://NAME; may be given several times " \
			"(without it: addresses, localhost, and what hostname(1) prints)"                    \
	}
/* Takes a name of --host. 0, or -EINVAL after a message. */
int serve_add_host(struct serve_options *o, const char *name);
/* Listens, before there are threads; url: "http://HOST:PORT". The descriptor, or -errno after a
 * message. */
int serve_listen(struct serve *s, struct serve_options *o, char *url, size_t size);
/* Serves at the descriptor. 0, or -EIO after a message, when it is closed. */
int serve_start(struct serve *s, int fd);
void serve_stop(struct serve *s);

/* ---- answers */

/* Header lines of an answer: name, value; ended by NULL. */
typedef const char *const serve_headers[];
/* Takes r, which may be NULL: no memory. */
enum MHD_Result serve_answer(struct MHD_Connection *c, unsigned status, const char *type,
	const char *const *headers, struct MHD_Response *r);
/* text is static. */
enum MHD_Result serve_text(
	struct MHD_Connection *c, unsigned status, const char *text, const char *const *headers);
const char *serve_header(struct MHD_Connection *c, const char *name);

#endif
