/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a recording. 0 or -errno. */
#ifndef RINGTAP_CLI_RECORD_FILE_H
#define RINGTAP_CLI_RECORD_FILE_H

#include <stdbool.h>

#include "ringtap/reader.h"

struct recorder;

int file_open_first(struct recorder *r); /* prints what is wrong */
int file_begin(struct recorder *r);      /* opens where it is not yet open; headers */
int file_end(struct recorder *r, bool final);
/* Ends the file, and the recording if -a files demands it, else begins the next one. */
int file_next(struct recorder *r);
/* Interface statistics; final: the capture is over, counts are exact. */
int file_statistics(struct recorder *r, bool final);

/* Writes packets; splits a run at the limits. */
int packets_put(struct recorder *r, const struct ringtap_run *run);

#endif
