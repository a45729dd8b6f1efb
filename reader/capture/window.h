/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: part of a capture's packets, which another capture reads. */
#ifndef RINGTAP_READER_CAPTURE_WINDOW_H
#define RINGTAP_READER_CAPTURE_WINDOW_H

#include "capture.h"

/* Part of a capture's packets, which another thread may read. */
struct rt_window {
	struct ringtap_capture *of;
	uint64_t from_ns, to_ns;
	uint64_t since_ns; /* as in struct ringtap_kept */
	/* Position by ring: what is before it may be given back. Release; pairs with the acquire in
	 * pinned(). */
	uint64_t *pins;
	struct rt_window *next;
};

/* Windows: instead of what other captures do. */
void rt_window_sync(struct ringtap_capture *cap);
void rt_window_follow(struct ringtap_capture *cap);
unsigned rt_window_next(
	struct ringtap_capture *cap, uint64_t watermark, struct ringtap_run *runs, unsigned max);
void rt_window_release(struct ringtap_capture *cap);
bool rt_window_learn_if(struct ringtap_capture *cap, uint32_t source, uint32_t local);
void rt_window_close(struct ringtap_capture *cap);

#endif
