/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of an incident, and its plot. */
#ifndef RINGTAP_CLI_FLIGHT_PAGE_H
#define RINGTAP_CLI_FLIGHT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

struct incident;

/* The plot of an incident, with seconds first … last of the history (none if they are equal). 0 or
 * -errno. */
int page_plot(const struct incident *i, unsigned first, unsigned last, FILE *f);
/* The page; plot: there is one. */
void page_write(const struct incident *i, bool plot, unsigned first, unsigned last, FILE *f);

#endif
