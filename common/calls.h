/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls and advice that the C library's headers may be too old to name: glibc 2.31 is the
 * oldest. A kernel without them answers ENOSYS or EINVAL, and the callers go on without. */
#ifndef RINGTAP_COMMON_CALLS_H
#define RINGTAP_COMMON_CALLS_H

#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#endif
