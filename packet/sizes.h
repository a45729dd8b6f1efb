/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of packets by their length. */
#ifndef RINGTAP_PACKET_SIZES_H
#define RINGTAP_PACKET_SIZES_H

#include <stdint.h>

#define SIZES 7
extern const uint32_t size_limits[SIZES]; /* bytes: a class is below its limit */
extern const char *const size_names[SIZES];

/* Less than SIZES. */
uint32_t size_class(uint32_t length);

#endif
