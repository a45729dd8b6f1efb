/* SPDX-License-Identifier: BSD-3-Clause */
/* Files beside an incident's packets. */
#ifndef RINGTAP_CLI_FLIGHT_REPORTS_H
#define RINGTAP_CLI_FLIGHT_REPORTS_H

struct incident;

/* 0 or -errno. */
int reports_write(struct incident *i);
/* Space on the disk for the last of them, which describes the others. 0 or -errno. */
int reports_reserve(const struct incident *i);

#endif
