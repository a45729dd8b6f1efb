/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets that the application holds, of a mempool with a use that grows. */
#ifndef RINGTAP_CLI_DOCTOR_PACKETS_H
#define RINGTAP_CLI_DOCTOR_PACKETS_H

#include "judge/verdict.h"

#define DOCTOR_PACKETS_NS (5 * NS_PER_S)

struct doctor_packets;

/* Follows what the application receives from now on, to find out what it holds of a pool. NULL
 * after printing why. The caller frees it. */
struct doctor_packets *doctor_packets_begin(const char *app, const char *pool);
void doctor_packets_free(struct doctor_packets *p);
/* To be called a few times a second. */
void doctor_packets_step(struct doctor_packets *p);
/* Ends it, and reads what is held. */
void doctor_packets_end(struct doctor_packets *p);
/* Lines of evidence of struct doctor_packets, if it is about that pool and has ended. growth: of
 * the pool's use, mbufs a second. */
void doctor_packets_evidence(
	const void *packets, struct verdict *v, const char *pool, double growth);

#endif
