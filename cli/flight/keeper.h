/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that keeps the packets. */
#ifndef RINGTAP_CLI_FLIGHT_KEEPER_H
#define RINGTAP_CLI_FLIGHT_KEEPER_H

struct flight;

/* 0 or -errno. */
int keeper_start(struct flight *f);
void keeper_stop(struct flight *f);

#endif
