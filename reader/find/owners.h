/* SPDX-License-Identifier: BSD-3-Clause */
/* The users of the Unix sockets in this network namespace, as the kernel has them. */
#ifndef RINGTAP_READER_FIND_OWNERS_H
#define RINGTAP_READER_FIND_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rt_owners {
	uint32_t *foreign; /* inodes, sorted, of users other than root and this one */
	size_t count;
	bool known; /* false: the kernel does not tell (before 5.3, or no AF_NETLINK) */
};

/* Free foreign. */
void rt_owners_read(struct rt_owners *o);
bool rt_owners_foreign(const struct rt_owners *o, unsigned long ino);

#endif
