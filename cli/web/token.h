/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients show that they may read by a token, once in the URL, and in a cookie from then on. */
#ifndef RINGTAP_CLI_WEB_TOKEN_H
#define RINGTAP_CLI_WEB_TOKEN_H

#include <microhttpd.h>
#include <stdbool.h>

#define TOKEN_MIN 16
#define TOKEN_MAX 128

struct token {
	char text[TOKEN_MAX + 1];
	char cookie[32]; /* its name: cookies are those of all ports of a host */
};

/* A random one; or that of a file, which is made with a random one if it is missing. 0, or -errno
 * after a message. */
int token_make(struct token *t, const char *file);
/* Names the cookie after the port. */
void token_set_port(struct token *t, unsigned port);
/* The header that sets the cookie. */
void token_header(const struct token *t, char *text, size_t size);

bool token_is(const struct token *t, const char *text);
/* The token in the URL, a cookie, or "Authorization: Bearer TOKEN". */
bool token_in_url(const struct token *t, struct MHD_Connection *c);
bool token_shown(const struct token *t, struct MHD_Connection *c);
/* Whether a request comes from a page of this server, or not from a browser: origin and host are
 * its headers, which may be NULL. */
bool token_same_origin(const char *origin, const char *host, bool cookie);

#endif
