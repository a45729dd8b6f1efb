/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on an mbuf that DPDK has noted: see common/mbuf_history.h. */
#ifndef RINGTAP_FATES_MBUF_HISTORY_H
#define RINGTAP_FATES_MBUF_HISTORY_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* "lib alloc, Rx", the oldest first; "..., " begins it where earlier ones are missing. "none". */
#define HISTORY_TEXT 320
char *history_text(uint64_t history, char buf[HISTORY_TEXT]);
/* The same as a list of names. */
json_t *history_json(uint64_t history);

#endif
