/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a reading of ringtap held. */
#ifndef RINGTAP_CLI_HELD_REPORT_H
#define RINGTAP_CLI_HELD_REPORT_H

#include "fates/held.h"
#include "fates/tables.h"

/* ctx: struct held; as struct fates_view has them. */
int held_text(void *ctx, FILE *f);
json_t *held_json(void *ctx);

#endif
