/* SPDX-License-Identifier: BSD-3-Clause */
/* sock_diag(7). */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/array.h"
#include "owners.h"

#define ANSWER_BYTES 32768

static int ask(int fd)
{
	struct {
		struct nlmsghdr h;
		struct unix_diag_req r;
	} q = {{.nlmsg_len = sizeof(q),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		{.sdiag_family = AF_UNIX, .udiag_states = ~0u, .udiag_show = UDIAG_SHOW_UID}};

	return send(fd, &q, sizeof(q), 0) == sizeof(q) ? 0 : -errno;
}

static void take(struct rt_owners *o, const struct nlmsghdr *h)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	int len = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*m)));
	uint32_t *ino;

	for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		uint32_t uid = *(const uint32_t *)RTA_DATA(a);

		o->known |= a->rta_type == UNIX_DIAG_UID;
		if (a->rta_type != UNIX_DIAG_UID || !uid || uid == geteuid())
			continue;
		ino = rt_array_add(o->foreign, o->count);
		if (!ino)
			return;
		*ino = m->udiag_ino;
	}
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* False: there is no more. */
static bool receive(int fd, struct rt_owners *o, void *buf)
{
	int len = (int)recv(fd, buf, ANSWER_BYTES, 0);

	for (struct nlmsghdr *h = buf; len > 0 && NLMSG_OK(h, (unsigned)len);
		h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return false;
		if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
			take(o, h);
	}
	return len >= 0;
}

void rt_owners_read(struct rt_owners *o)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	void *buf = malloc(ANSWER_BYTES);

	*o = (struct rt_owners){0};
	if (fd >= 0 && buf && !ask(fd))
		while (receive(fd, o, buf))
			;
	if (o->count)
		qsort(o->foreign, o->count, sizeof(*o->foreign), by_number);
	free(buf);
	if (fd >= 0)
		close(fd);
}

bool rt_owners_foreign(const struct rt_owners *o, unsigned long ino)
{
	const uint32_t key = (uint32_t)ino;

	return o->count && bsearch(&key, o->foreign, o->count, sizeof(key), by_number);
}
