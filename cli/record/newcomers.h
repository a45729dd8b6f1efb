/* SPDX-License-Identifier: BSD-3-Clause */
/* Secondary processes that start during a recording. */
#ifndef RINGTAP_CLI_RECORD_NEWCOMERS_H
#define RINGTAP_CLI_RECORD_NEWCOMERS_H

struct recorder;

/* From now on secondary processes that start are noticed, and reported by newcomers_check(). */
void newcomers_begin(struct recorder *r);
void newcomers_check(struct recorder *r);
void newcomers_end(struct recorder *r);

#endif
