/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that asks the flight recorders of the applications that are watched, once a second. */
#ifndef RINGTAP_RECORDER_ANSWERS_H
#define RINGTAP_RECORDER_ANSWERS_H

#include <jansson.h>

#include "measure/watch.h"

struct recorder_answers;
/* extend: called by the thread with the answer of each recorder, to add to it what takes a while;
 * NULL: nothing. 0 or -errno. */
int recorder_answers_start(
	struct recorder_answers **out, struct watch *w, void (*extend)(json_t *recorder));
void recorder_answers_stop(struct recorder_answers *r);
/* The last answers of those of an application, by its folder; NULL: none yet. The caller decrefs.
 */
json_t *recorder_answers_of(struct recorder_answers *r, const char *dir);

#endif
