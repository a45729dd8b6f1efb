/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a server listens: "[HOST:]PORT". */
#ifndef RINGTAP_SERVE_ADDRESS_H
#define RINGTAP_SERVE_ADDRESS_H

#include <stddef.h>

#define ADDRESS_HOST_LEN 256

/* A socket that listens at an address of --listen, with a queue of that many connections; or
 * -errno after a message of the command: -EINVAL: it is not an address. */
int address_listen(const char *command, const char *listen, int queue);
/* The host of an address of --listen; "": any, or it is too long. */
void address_host(const char *listen, char host[ADDRESS_HOST_LEN]);
/* "http://HOST:PORT" of a socket that listens. Returns its port, 0 if that is unknown. */
unsigned address_url(int fd, char *url, size_t size);

#endif
