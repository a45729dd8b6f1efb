/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PACKET_SIZE_JSON_H
#define RINGTAP_PACKET_SIZE_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "sizes.h"

/* An object with the bytes of a class of sizes; the caller adds what it counts. */
json_t *size_json(uint32_t class);
/* A list of them with packets. */
json_t *sizes_json(const uint64_t packets[SIZES]);

#endif
