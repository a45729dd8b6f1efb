/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For LD_PRELOAD. Packet sockets get descriptors in falling order, by twos: as if another thread
 * had closed a descriptor between two calls.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define HIGH 200

int socket(int domain, int type, int protocol)
{
	static int count;
	int (*real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	int fd = real(domain, type, protocol), high;

	if (fd < 0 || domain != AF_PACKET || count++ % 2)
		return fd;
	high = fcntl(fd, F_DUPFD, HIGH);
	close(fd);
	return high;
}
