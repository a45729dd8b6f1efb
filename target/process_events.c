/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process_events.h"

#define DATA (NLMSG_HDRLEN + sizeof(struct cn_msg))

int process_events_filter(int fd)
{
	struct sock_filter code[] = {
		/* Loads are big-endian, the message is of this host. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA + offsetof(struct proc_event, what)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_COMM), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

static int listen_to(int fd)
{
	const enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;
	_Alignas(struct nlmsghdr) char message[NLMSG_LENGTH(sizeof(struct cn_msg) + sizeof(op))] = {
		0};
	struct nlmsghdr *h = (void *)message;
	struct cn_msg *c = NLMSG_DATA(h);

	h->nlmsg_len = sizeof(message);
	h->nlmsg_type = NLMSG_DONE;
	c->id = (struct cb_id){.idx = CN_IDX_PROC, .val = CN_VAL_PROC};
	c->len = sizeof(op);
	memcpy(c->data, &op, sizeof(op));
	return send(fd, message, sizeof(message), 0) < 0 ? -errno : 0;
}

int process_events_open(void)
{
	const struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	int ret;

	if (fd < 0)
		return -errno;
	ret = process_events_filter(fd);
	if (!ret && bind(fd, (const void *)&at, sizeof(at)))
		ret = -errno;
	if (!ret)
		ret = listen_to(fd);
	if (ret)
		close(fd);
	return ret ? ret : fd;
}

void process_events_take(int fd)
{
	char message[4096];

	/* An overflow is an event, too, and the next call goes on. */
	while (recv(fd, message, sizeof(message), 0) >= 0 || errno == ENOBUFS || errno == EINTR)
		;
}
