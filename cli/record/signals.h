/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that end a recording, or ask it for something. */
#ifndef RINGTAP_CLI_RECORD_SIGNALS_H
#define RINGTAP_CLI_RECORD_SIGNALS_H

#include <stdbool.h>

#include "ringtap/reader.h"
#include "sink/sink.h"

/* SIGINT, SIGTERM and SIGHUP end the capture; another one STOP_AGAIN_NS later discards what is not
 * yet written, and so does, after the first one, a pipe whose reader takes nothing for seconds. */
void signals_catch(struct ringtap_capture *cap);
/* Until then a signal also ends the waiting for an application. */
void signals_attached(void);
void signals_release(void);
int signals_count(void);
/* SIGUSR1 and SIGUSR2: whether one came since the last call. */
bool signals_want_counts(void);
bool signals_want_file(void);
extern struct sink_patience signals_patience;

#endif
