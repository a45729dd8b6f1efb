/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a peer. ringtap_break_fd() ends it. */
#ifndef RINGTAP_READER_WAIT_H
#define RINGTAP_READER_WAIT_H

#include <stdint.h>

#define RT_INTERRUPTED "interrupted" /* text of -ECANCELED */

/* Until fd can be read, or its peer has gone; ms: -1: no limit. 0, -ETIMEDOUT, -ECANCELED, -errno.
 */
int rt_wait_readable(int fd, int ms);
/* 0 or -ECANCELED. */
int rt_wait_ns(uint64_t ns);

#endif
