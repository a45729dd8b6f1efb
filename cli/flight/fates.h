/* SPDX-License-Identifier: BSD-3-Clause */
/* --fates: what becomes of the packets of incidents. All functions do nothing without it. */
#ifndef RINGTAP_CLI_FLIGHT_FATES_H
#define RINGTAP_CLI_FLIGHT_FATES_H

#include <stdbool.h>

struct flight;
struct incident;

/* Attaches to all ports of the application. Prints what is wrong. */
int flight_fates_attach(struct flight *f);
/* Before the packets are kept: what is kept shall be followed. */
void flight_fates_start(struct flight *f);
void flight_fates_close(struct flight *f);
/* Takes what has become known. */
void flight_fates_take(struct flight *f);
/* Whether fates of the incident's last packets may still be noticed. */
bool flight_fates_wait(const struct flight *f, const struct incident *i);
/* In the thread that writes packets, behind the interfaces: fates follow. 0 or -errno. */
int flight_fates_begin_file(struct incident *i);
/* Behind the last packet. 0 or -errno. */
int flight_fates_finish(struct incident *i);

#endif
