/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsers of option values. All return 0, -EINVAL for wrong syntax, -ENODATA for a time without a
 * unit, or -ERANGE for a value that is not allowed. */
#ifndef RINGTAP_FWD_PARSE_H
#define RINGTAP_FWD_PARSE_H

#include "config.h"

/* ROLE:PORT[,PORT][@CPU] */
int parse_role(const char *text, struct role_spec *out);
/* "max", or a number with an optional fraction and k, M or G (powers of 1000), also with /s. zero:
 * whether 0 is allowed. */
int parse_rate(const char *text, bool zero, uint64_t *out);
/* RATE:TIME,… A rate of 0 is a pause. */
int parse_stages(const char *text, struct stage *out, unsigned *count);
/* "imix", or SIZE[xTIMES],…: returns a round of sizes, evenly mixed; out has SIZES_MAX entries. */
int parse_sizes(const char *text, uint16_t *out, unsigned *count);
/* drop, retry, retry:N */
int parse_tx_full(const char *text, struct tx_full *out);
int parse_mac(const char *text, uint8_t out[6]);

#endif
