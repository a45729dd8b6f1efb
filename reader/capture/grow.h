/* SPDX-License-Identifier: BSD-3-Clause */
/* The rest of a source's buffer, which a thread populates. */
#ifndef RINGTAP_READER_CAPTURE_GROW_H
#define RINGTAP_READER_CAPTURE_GROW_H

#include "capture.h"

/* Maps the memory of a source, also what is to come. */
int rt_source_map(struct ringtap_capture *cap, struct rt_source *s);
/* Begins to populate it; takes note of what the probe has taken
 * since; wants no more; ends, also if it was not begun. */
void rt_growth_begin(struct rt_source *s);
void rt_growth_look(struct ringtap_capture *cap, struct rt_source *s);
void rt_growth_quit(struct rt_source *s);
bool rt_growth_runs(const struct rt_source *s);
void rt_growth_end(struct rt_source *s);
/* Packets that the full buffer of a source has lost before all of it was there. */
uint64_t rt_growth_lost(const struct rt_source *s);
/* Time until all of it was there, or since it began; 0: all was there from the beginning. */
uint64_t rt_growth_ns(const struct rt_source *s);

#endif
