/* SPDX-License-Identifier: BSD-3-Clause */
/* --fates: what becomes of recorded packets, as blocks of the file (docs/format.md). All functions
 * do nothing without it. */
#ifndef RINGTAP_CLI_RECORD_FATES_H
#define RINGTAP_CLI_RECORD_FATES_H

#include <stdbool.h>

#include "common/pcapng.h"
#include "ringtap/fates.h"

struct record_fates;
struct recorder;

/* Attaches to all targets, after the capture of packets has: of a port that appears later, the
 * probe then links the newer session first. Prints what is wrong. */
int record_fates_attach(struct recorder *r);
/* Before the capture of packets is started. */
void record_fates_start(struct recorder *r);
void record_fates_free(struct record_fates *f);

/* 0 or -errno: the output failed. */

/* Behind the header of each file. */
int record_fates_begin_file(struct recorder *r);
/* Writes the fates that have become known since the last call, of packets in the file. */
int record_fates_take(struct recorder *r);
/* After the last packet: what is left, and the counts. */
int record_fates_finish(struct recorder *r);

/* Sum over all queues, once the recording is finished. False: there are no fates. */
bool record_fates_total(const struct recorder *r, struct rt_fates_queue *sum);

#endif
