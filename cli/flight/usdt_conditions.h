/* SPDX-License-Identifier: BSD-3-Clause */
/* 'usdt:' conditions: breakpoints of perf in the application. */
#ifndef RINGTAP_CLI_FLIGHT_USDT_CONDITIONS_H
#define RINGTAP_CLI_FLIGHT_USDT_CONDITIONS_H

#include <stdbool.h>

struct flight;

/* Sets breakpoints in the application, which go with this process. 0 or -errno, printed. */
int usdt_conditions_attach(struct flight *f);
/* Takes the events; threads: also looks for new threads. */
void usdt_conditions_check(struct flight *f, bool threads);
void usdt_conditions_close(struct flight *f);

#endif
