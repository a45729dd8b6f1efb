/* SPDX-License-Identifier: BSD-3-Clause */
/* A page of a timeline: its tracks as lanes and curves, which are kept until the end. */
#ifndef RINGTAP_CLI_TRACE_TIMELINE_PAGE_H
#define RINGTAP_CLI_TRACE_TIMELINE_PAGE_H

#include "perfetto.h"
#include "web/view.h"

/* Bars, and values of curves. Other tracks may lag by half a second: as many again have room. */
#define TIMELINE_BARS 100000

struct timeline_page;

/* NULL: no memory. */
struct timeline_page *timeline_page_new(void);
void timeline_page_free(struct timeline_page *p);
/* Track number, in the order of numbers from 1 on. */
void timeline_page_track(struct timeline_page *p, uint32_t number, const struct perfetto_place *at);
/* An event of a track, with its time and name in the file. */
void timeline_page_put(struct timeline_page *p, uint32_t number, const struct perfetto_event *e,
	uint64_t ns, const char *name);
/* When it became full: nothing later is in it. 0: it did not. */
uint64_t timeline_page_full_ns(const struct timeline_page *p);
/* Adds its panels. from_ns, to_ns: the times that v shows. */
void timeline_page_view(
	const struct timeline_page *p, struct view *v, uint64_t from_ns, uint64_t to_ns);

#endif
