/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a file or of standard input, uncompressed where it is zstd or LZ4. */
#ifndef RINGTAP_PACKET_UNPACK_H
#define RINGTAP_PACKET_UNPACK_H

#include "window.h"

/* path: "-" is standard input. 0 or -errno. Close w in any case. Damaged compressed data is an
 * error of reading, -EBADMSG. */
int unpack_open(struct window *w, const char *path);
/* Why a file cannot be opened or read, and what to do, for people. */
const char *unpack_error(int error);

#endif
