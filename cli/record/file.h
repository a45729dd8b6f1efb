/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a recording. 0 or -errno. */
#ifndef RINGTAP_CLI_RECORD_FILE_H
#define RINGTAP_CLI_RECORD_FILE_H

#include <stdbool.h>

#include "ringtap/reader.h"

struct recorder;

int file_open_first(struct recorder *r); /* prints what is wrong */
int file_begin(struct recorder *r);      /* opens where it is not yet open; headers */
/* Describes interfaces that have appeared; with --split interface each has a file. */
int file_interfaces(struct recorder *r);
/* output_push() and output_flush() of each file. */
int file_push(struct recorder *r);
int file_flush(struct recorder *r);
int file_end(struct recorder *r, bool final);
/* Removes files that were opened but not begun. */
void file_abandon(struct recorder *r);
void file_free(struct recorder *r);
/* Ends the file, and the recording if -a files demands it, else begins the next one. */
int file_next(struct recorder *r);
/* Interface statistics; final: the capture is over, counts are exact. */
int file_statistics(struct recorder *r, bool final);

/* Writes packets; splits a run at the limits. */
int packets_put(struct recorder *r, const struct ringtap_run *run);

#endif
