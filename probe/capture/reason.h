/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reasons that the application gives for packets that it drops, by include/ringtap/reason.h. Each
 * session with fates has numbers of its own for their texts; an entry of its table of fates has the
 * number.
 */
#ifndef RINGTAP_PROBE_CAPTURE_REASON_H
#define RINGTAP_PROBE_CAPTURE_REASON_H

#include <stdint.h>

#include "common/segment.h"

#define RT_REASON_SESSIONS 16u

struct rt_session;

/* Sessions that listen; NULL: none. Atomic; read in an epoch. */
extern struct rt_session *rt_reason_sessions[RT_REASON_SESSIONS];

/* The hashes of the texts with a number: private, as readers may write to the texts. Atomic. */
struct rt_reasons {
	uint64_t hash[RT_FATE_REASONS]; /* 0: none yet */
};

/* The number of a text, which is made if there is room; hash: of the text, not 0. Any thread. */
uint32_t rt_reason_number(const struct rt_session *s, uint64_t hash, const char *text, size_t len);

/* Control lock held. */

/* A session begins to have fates. Beyond RT_REASON_SESSIONS sessions it does without reasons. */
void rt_reason_listen(struct rt_session *s);
/* It is not found any more; a grace period must follow. */
void rt_reason_unlisten(const struct rt_session *s);
/* For objects that were loaded since. */
void rt_reason_tick(void);

#endif
