/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions' filters, and their replacement while packets flow. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fail.h"
#include "filter.h"
#include "request.h"
#include "session.h"

void rt_session_free_filters(struct rt_filter **filters, uint32_t count)
{
	for (uint32_t i = 0; filters && i < count; i++) {
		uint32_t first = 0; /* target that has the same one */

		while (filters[first] != filters[i])
			first++;
		if (first == i)
			rt_filter_free(filters[i]);
	}
	free(filters);
}

int rt_session_filter_request(struct rt_session *s, struct rt_request *req, struct rt_insn *insns,
	uint32_t count, char *err)
{
	*req = (struct rt_request){.open = {.target_count = s->target_count}, .insns = insns};
	if (s->old_filters)
		return rt_fail(-EBUSY, err, RT_TEXT_LEN, "the filter is being changed already");
	if (s->ids & RT_IDS_FATES)
		return rt_fail(
			-EINVAL, err, RT_TEXT_LEN, "fates cover all packets: leave out the filter");
	req->targets = malloc(s->target_count * sizeof(*req->targets));
	if (!req->targets)
		return rt_fail(-ENOMEM, err, RT_TEXT_LEN, "not enough memory");
	memcpy(req->targets, s->targets, s->target_count * sizeof(*req->targets));
	for (uint32_t i = 0; i < s->target_count; i++) {
		req->targets[i].insn_first = count ? 0 : RT_NO_FILTER;
		req->targets[i].insn_count = count;
	}
	return 0;
}

void rt_session_set_filter(struct rt_session *s, struct rt_request *req)
{
	for (uint32_t i = 0; i < s->tap_count; i++) {
		struct rt_tap *t = s->taps[i];

		/* Pairs with the acquire in feed(): the program is complete. */
		rt_store_release(&t->filter, req->filters[s->ifs[t->if_index].target]);
	}
	s->old_filters = s->filters;
	s->filters = req->filters;
	req->filters = NULL;
	rt_grace_begin(&s->filter_grace);
}

bool rt_session_filter_settled(struct rt_session *s)
{
	if (!s->old_filters || !rt_grace_over(&s->filter_grace))
		return false;
	rt_session_free_filters(s->old_filters, s->target_count);
	s->old_filters = NULL;
	return true;
}
