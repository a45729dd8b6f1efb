/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "filter_job.h"
#include "session.h"

struct rt_filter_job *rt_filter_job_new(const struct rt_request *req, bool opens)
{
	struct rt_filter_job *j = calloc(1, sizeof(*j));
	struct rt_filter **filters = calloc(req->open.target_count, sizeof(struct rt_filter *));

	if (!j || !filters) {
		free(j);
		free(filters);
		return NULL;
	}
	j->req = *req;
	j->req.filters = filters;
	j->opens = opens;
	return j;
}

static void explain(struct rt_filter_job *j, uint32_t insn_count)
{
	snprintf(j->err, sizeof(j->err), "the probe refuses the filter (%u instructions): %s",
		insn_count,
		j->ret == -EINVAL ? "it has loops or unknown instructions; record without it "
				    "and filter the file"
				  : strerror(-j->ret));
}

/* The filter of an earlier target with the same program; NULL: there is none. */
static struct rt_filter *made_before(const struct rt_request *req, uint32_t target)
{
	const struct rt_msg_target *w = &req->targets[target];

	for (uint32_t i = 0; i < target; i++) {
		const struct rt_msg_target *other = &req->targets[i];

		if (other->insn_first != RT_NO_FILTER && other->insn_count == w->insn_count &&
			!memcmp(&req->insns[other->insn_first], &req->insns[w->insn_first],
				w->insn_count * sizeof(*req->insns)))
			return req->filters[i];
	}
	return NULL;
}

void rt_filter_job_step(struct rt_filter_job *j)
{
	const struct rt_request *req = &j->req;
	const struct rt_msg_target *w;

	while (j->next < req->open.target_count && req->targets[j->next].insn_first == RT_NO_FILTER)
		j->next++;
	if (j->next < req->open.target_count) {
		w = &req->targets[j->next];
		req->filters[j->next] = made_before(req, j->next);
		if (!req->filters[j->next])
			j->ret = rt_filter_create(
				&req->filters[j->next], &req->insns[w->insn_first], w->insn_count);
		if (j->ret)
			explain(j, w->insn_count);
		j->next++;
	}
	j->done = j->ret || j->next == req->open.target_count;
}

void rt_filter_job_free(struct rt_filter_job *j)
{
	if (!j)
		return;
	rt_session_free_filters(j->req.filters, j->req.open.target_count);
	rt_request_free(&j->req);
	free(j);
}
