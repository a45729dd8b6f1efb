/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into unit tests, this does what they need and qemu-user 7.2 lacks. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define EMULATOR "/usr/bin/qemu-aarch64-static"
#define ARGS     16

ssize_t process_vm_readv(pid_t, const struct iovec *, unsigned long, const struct iovec *,
	unsigned long, unsigned long);

/* qemu-user reports success for an madvise() that it does not do. This refuses what kernels before
 * 5.14 lack, but for memory that is not there, as later ones. */
int madvise(void *at, size_t len, int advice)
{
	unsigned char resident;

	if (advice == 22 || advice == 23) { /* MADV_POPULATE_READ, MADV_POPULATE_WRITE */
		if (!mincore(at, 1, &resident))
			errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, at, len, advice);
}

/* For memory of this process, a buffer, and ranges that a pipe has room for: write() fails where
 * memory cannot be read. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
	const struct iovec *from, unsigned long from_count, unsigned long flags)
{
	ssize_t done = 0, n = 0;
	int ends[2], error;

	if (pid != getpid() || to_count != 1 || flags || pipe(ends)) {
		errno = ENOSYS;
		return -1;
	}
	for (unsigned long i = 0; i < from_count && n >= 0; i++) {
		n = write(ends[1], from[i].iov_base, from[i].iov_len);
		if (n > 0)
			done += read(ends[0], (char *)to->iov_base + done, (size_t)n);
	}
	error = errno;
	close(ends[0]);
	close(ends[1]);
	errno = error;
	return done ? done : n;
}

/* A program of another architecture is nothing that the kernel executes. */
int execve(const char *path, char *const argv[], char *const envp[])
{
	char self[PATH_MAX] = "", *args[ARGS + 4] = {EMULATOR, "-0", argv[0], self};

	if (strcmp(path, "/proc/self/exe") || readlink(path, self, sizeof(self) - 1) < 0)
		return (int)syscall(SYS_execve, path, argv, envp);
	for (int i = 1; argv[i] && i < ARGS; i++)
		args[3 + i] = argv[i];
	return (int)syscall(SYS_execve, EMULATOR, args, envp);
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

/* Programs that a test starts are this machine's, and would report a library of another
 * architecture. */
static void __attribute__((constructor)) alone(void)
{
	unsetenv("LD_PRELOAD");
}
