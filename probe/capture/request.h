/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses and checks an RT_MSG_OPEN message. Free of DPDK: it is also a fuzz target. */
#ifndef RINGTAP_PROBE_CAPTURE_REQUEST_H
#define RINGTAP_PROBE_CAPTURE_REQUEST_H

#include <stddef.h>

#include "common/proto.h"

struct rt_filter;

struct rt_request {
	struct rt_msg_open open;
	struct rt_msg_target *targets; /* open.target_count */
	struct rt_insn *insns;         /* open.insn_count; NULL if 0 */
	struct rt_msg_sample sample;   /* with RT_OPEN_SAMPLE */
	struct rt_msg_first first;     /* with RT_OPEN_FIRST */
	struct rt_filter *
		*filters; /* the targets' filters, compiled; NULL entries: none; see filter_job.h */
	uint32_t reader_pid;
	char reader[RT_NAME_LEN];
};

/* Copies out of the message, which may change meanwhile or be unaligned. Every bound is checked,
 * every string terminated. -EINVAL: err (RT_TEXT_LEN bytes) has the reason; -ENOMEM.
 * rt_request_free() releases the memory, also after an error. */
int rt_request_parse(struct rt_request *req, const void *msg, size_t len, char *err);
void rt_request_free(struct rt_request *req);

/* Copies the program of an RT_MSG_FILTER; *insns becomes NULL if it has none. -EINVAL: err
 * (RT_TEXT_LEN bytes) has the reason; -ENOMEM. The caller frees *insns. */
int rt_request_filter(
	const void *msg, size_t len, struct rt_insn **insns, uint32_t *count, char *err);

#endif
