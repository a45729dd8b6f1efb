/* SPDX-License-Identifier: BSD-3-Clause */
/* The filters of one request, compiled one by one, so that other connections are served in
 * between and the end of the connection ends it. */
#ifndef RINGTAP_PROBE_CAPTURE_FILTER_JOB_H
#define RINGTAP_PROBE_CAPTURE_FILTER_JOB_H

#include <stdbool.h>

#include "request.h"

struct rt_filter_job {
	struct rt_request req; /* req.filters are made here */
	bool opens;            /* a session; else it changes the filter of one */
	bool done;
	uint32_t next; /* target */
	int ret;       /* once done: 0 or -errno and a sentence */
	char err[RT_TEXT_LEN];
};

/* Takes over the contents of req. NULL: no memory, and nothing is taken over. */
struct rt_filter_job *rt_filter_job_new(const struct rt_request *req, bool opens);
/* Compiles the next filter, in bounded time (filter.h). No lock is needed. */
void rt_filter_job_step(struct rt_filter_job *j);
/* Also frees the filters that were not taken out of req. */
void rt_filter_job_free(struct rt_filter_job *j);

#endif
