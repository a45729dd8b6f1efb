/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_CLI_BUG_REPORT_SYSTEM_H
#define RINGTAP_CLI_BUG_REPORT_SYSTEM_H

#include <jansson.h>

/* Kernel, distribution, CPU, memory and the settings that decide what ringtap may do. */
json_t *system_json(void);

#endif
