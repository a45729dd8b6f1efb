/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions' filters, and their replacement while packets flow. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "session.h"

int rt_session_make_filters(struct rt_filter ***out, const struct rt_msg_want *wants,
	uint32_t want_count, const struct rt_insn *insns, char *err)
{
	struct rt_filter **filters = *out = calloc(want_count, sizeof(*filters));

	if (!filters)
		return -ENOMEM;
	for (uint32_t i = 0; i < want_count; i++) {
		const struct rt_msg_want *w = &wants[i];
		int ret;

		if (w->insn_first == RT_NO_FILTER)
			continue;
		ret = rt_filter_create(&filters[i], &insns[w->insn_first], w->insn_count);
		if (ret) {
			snprintf(err, RT_TEXT_LEN,
				"the application's DPDK refuses the filter (%u instructions): %s",
				w->insn_count,
				ret == -ENOTSUP ? "it has no rte_bpf with libpcap"
						: strerror(-ret));
			return ret;
		}
	}
	return 0;
}

void rt_session_free_filters(struct rt_filter **filters, uint32_t count)
{
	for (uint32_t i = 0; filters && i < count; i++)
		rt_filter_free(filters[i]);
	free(filters);
}

int rt_session_set_filter(
	struct rt_session *s, const struct rt_insn *insns, uint32_t count, char *err)
{
	struct rt_filter **filters;
	struct rt_msg_want *wants;
	int ret;

	if (s->old_filters) {
		snprintf(err, RT_TEXT_LEN, "the filter is being changed already");
		return -EBUSY;
	}
	snprintf(err, RT_TEXT_LEN, "not enough memory");
	wants = malloc(s->want_count * sizeof(*wants));
	if (!wants)
		return -ENOMEM;
	memcpy(wants, s->wants, s->want_count * sizeof(*wants));
	for (uint32_t i = 0; i < s->want_count; i++) {
		wants[i].insn_first = count ? 0 : RT_NO_FILTER;
		wants[i].insn_count = count;
	}
	ret = rt_session_make_filters(&filters, wants, s->want_count, insns, err);
	free(wants);
	if (ret) {
		rt_session_free_filters(filters, s->want_count);
		return ret;
	}
	for (uint32_t i = 0; i < s->tap_count; i++) {
		struct rt_tap *t = s->taps[i];

		/* Pairs with the acquire in hook_burst.c: the program is complete. */
		rt_store_release(&t->filter, filters[s->ifs[t->if_index].want]);
	}
	s->old_filters = s->filters;
	s->filters = filters;
	rt_grace_begin(&s->filter_grace);
	return 0;
}

bool rt_session_filter_settled(struct rt_session *s)
{
	if (!s->old_filters || !rt_grace_over(&s->filter_grace))
		return false;
	rt_session_free_filters(s->old_filters, s->want_count);
	s->old_filters = NULL;
	return true;
}
