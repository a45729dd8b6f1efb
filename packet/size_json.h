/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PACKET_SIZE_JSON_H
#define RINGTAP_PACKET_SIZE_JSON_H

#include <jansson.h>
#include <stdint.h>

/* An object with the bytes of a class of sizes; the caller adds what it counts. */
json_t *size_json(uint32_t class);

#endif
