/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules. Each adds verdicts by thresholds of limits.h. */
#ifndef RINGTAP_JUDGE_RULES_H
#define RINGTAP_JUDGE_RULES_H

#include "examination.h"

/* loss.c, growth.c, hang.c, time.c, memory.c, rings.c, placement.c */
void rule_pools(const struct examination *e, struct diagnosis *d);
void rule_stopped(const struct examination *e, struct diagnosis *d);
void rule_missed(const struct examination *e, struct diagnosis *d);
void rule_hung(const struct examination *e, struct diagnosis *d);
void rule_growth(const struct examination *e, struct diagnosis *d);
void rule_unsent(const struct examination *e, struct diagnosis *d);
void rule_preempted(const struct examination *e, struct diagnosis *d);
void rule_small_bursts(const struct examination *e, struct diagnosis *d);
void rule_uneven_queues(const struct examination *e, struct diagnosis *d);
void rule_saturated(const struct examination *e, struct diagnosis *d);
void rule_placement(const struct examination *e, struct diagnosis *d);
void rule_scattered(const struct examination *e, struct diagnosis *d);
void rule_rings(const struct examination *e, struct diagnosis *d);

/* Whether a thread did anything at any port. */
bool thread_works(const struct examination *e, uint32_t thread);
/* Evidence of the thread that did not poll for longest, if that is long, whatever the reason. True:
 * it had packets in hand, or does not sleep most of its time. */
bool stall_evidence(const struct examination *e, struct verdict *v);
/* Upper bound of the mbufs that one application's descriptors, caches and bursts take of a pool. */
uint64_t pool_needed(const struct examination *e, const struct ringtap_pool_stats *p);
/* Evidence of threads that may poll, of which nothing else is known. True: one of them seems to
 * hang. */
bool unpolled_evidence(const struct examination *e, struct verdict *v);

#endif
