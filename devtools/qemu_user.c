/* SPDX-License-Identifier: BSD-3-Clause */
/* qemu-user reports success for an madvise() that it does not do. Preloaded, this refuses what
 * kernels before 5.14 lack. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void *, size_t, int);

int madvise(void *at, size_t len, int advice)
{
	if (advice == 22 || advice == 23) { /* MADV_POPULATE_READ, MADV_POPULATE_WRITE */
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, at, len, advice);
}

/* Programs that a test starts are this machine's, and would report a library of another
 * architecture. */
static void __attribute__((constructor)) alone(void)
{
	unsetenv("LD_PRELOAD");
}
