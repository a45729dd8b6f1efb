/* SPDX-License-Identifier: BSD-3-Clause */
/* The worst fault of each application, by the rules of ringtap doctor. */
#ifndef RINGTAP_CLI_TOP_FAULTS_H
#define RINGTAP_CLI_TOP_FAULTS_H

#include "measure/watch.h"

#define FAULTS   4
#define FAULT_NS (5 * NS_PER_S) /* a short interval may have no reading of the drivers */

struct faults {
	struct {
		char app[64], line[448];
		uint64_t ns; /* CLOCK_MONOTONIC, when it was found; 0: none */
	} list[FAULTS];
};

/* Judges the interval of each application. */
void faults_find(struct faults *f, const struct watch *w);

#endif
