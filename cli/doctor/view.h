/* SPDX-License-Identifier: BSD-3-Clause */
/* The document of doctor --html. */
#ifndef RINGTAP_CLI_DOCTOR_VIEW_H
#define RINGTAP_CLI_DOCTOR_VIEW_H

#include "judge/examination.h"
#include "web/view.h"

/* Zero it first. */
struct doctor_view {
	struct view view; /* the caller writes its document, or frees it; NULL: nothing was added */
	json_t *threads, *ports;
};

void doctor_view_add(struct doctor_view *w, const struct examination *e, const struct diagnosis *d);

#endif
