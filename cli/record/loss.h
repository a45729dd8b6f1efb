/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a recording lost packets. */
#ifndef RINGTAP_CLI_RECORD_LOSS_H
#define RINGTAP_CLI_RECORD_LOSS_H

#include <stddef.h>
#include <stdint.h>

struct recorder;

/* Nanoseconds that this thread has been runnable without a CPU so far; 0: unknown. */
uint64_t thread_waited_ns(void);
/* Why the buffer was full, and what would have saved the packets. */
void explain_full_buffer(const struct recorder *r, char *out, size_t size);

#endif
