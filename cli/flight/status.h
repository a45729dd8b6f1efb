/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of what is kept, and the answers to ringtap flight top and ringtap export. */
#ifndef RINGTAP_CLI_FLIGHT_STATUS_H
#define RINGTAP_CLI_FLIGHT_STATUS_H

struct flight;

/* 0 or -errno: no client can connect then, and all else works. */
int status_open(struct flight *f);
void status_close(struct flight *f);
/* Readable while a client asks; -1: none, or not now. */
int status_fd(const struct flight *f);
void status_answer(struct flight *f);
/* Reads the counters, if it is time to. */
void status_step(struct flight *f);

#endif
