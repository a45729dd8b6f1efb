/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "common/atomics.h"
#include "common/clock.h"
#include "samples.h"

struct samples *samples_new(uint64_t every, uint64_t length, uint64_t max)
{
	struct samples *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct samples){.every = every, .run = length, .max = max};
	s->list = malloc(max * sizeof(*s->list));
	if (!s->list) {
		free(s);
		return NULL;
	}
	memset(s->list, 0xff, max * sizeof(*s->list));
	return s;
}

void samples_free(struct samples *s)
{
	if (s)
		free(s->list);
	free(s);
}

void samples_take(struct samples *s, struct rte_mbuf *const *m, uint16_t n, uint32_t stage)
{
	uint64_t now = 0;

	/* Most bursts lie between two sample runs. */
	if (s->position >= s->run && s->position + n <= s->every) {
		s->position += n;
		return;
	}
	for (uint16_t i = 0; i < n; i++) {
		if (s->position == s->every)
			s->position = 0;
		if (s->position++ >= s->run)
			continue;
		if (s->count == s->max) {
			s->lost++;
			continue;
		}
		now = now ? now : rt_tsc();
		s->list[s->count] = (struct sample){.tsc = now,
			.va = (uint64_t)(uintptr_t)m[i]->buf_addr + m[i]->data_off,
			.iova = rte_mbuf_data_iova(m[i]),
			.stage = stage};
		/* The main thread may read it. */
		rt_store(&s->count, s->count + 1);
	}
}
