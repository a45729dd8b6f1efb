/* SPDX-License-Identifier: BSD-3-Clause */
/* Incidents on disk. */
#ifndef RINGTAP_CLI_FLIGHT_FOLDER_H
#define RINGTAP_CLI_FLIGHT_FOLDER_H

#include <stdint.h>

#include "base/command.h"
#include "recorder/incidents.h"

#define FLIGHT_PACKETS    "packets.pcapng"
#define FLIGHT_INCIDENT   "incident.json"
#define FLIGHT_METRICS    "metrics.json"
#define FLIGHT_UNFINISHED ".incident.json" /* becomes FLIGHT_INCIDENT */
#define FLIGHT_DOCTOR     "doctor.txt"
#define FLIGHT_PAGE       "index.html"
#define FLIGHT_TRACE      "trace.json"

/* Removes the oldest incidents until there are at most count (0: any number), of at most bytes (0:
 * any size). The newest stays, and so do those that are being written. Returns how many it removed.
 */
unsigned folder_prune(const char *path, uint64_t count, uint64_t bytes);
/* Removes an incident's files, and its folder if nothing else is there. */
void folder_remove(const char *folder, const char *name);
/* 0, or STATUS_FAILED after a message of this command: there is no such folder. */
int folder_check(const char *command, const char *folder);
/* FOLDER/NAME/PART, or FOLDER/NAME if part is NULL. The caller frees; NULL: no memory. */
char *folder_path(const char *folder, const char *name, const char *part);
/* The commands below ringtap flight. */
extern const struct command *const folder_commands[];

#endif
