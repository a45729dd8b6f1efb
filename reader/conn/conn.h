/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_READER_CONN_CONN_H
#define RINGTAP_READER_CONN_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/proto.h"
#include "names.h"
#include "ringtap/reader.h"
#include "reader/text.h"
#include "reader/versions.h"
#include "reader/tunables.h"

struct ringtap_conn {
	int fd;
	int timeout_ms; /* 0: rt_reader_limits.answer_ms */
	bool awake_only;
	uint32_t host_pid;
	struct rt_msg_welcome app;
	struct rt_names names;
	/* RT_MSG_GROW: answers come whenever they are ready. */
	struct {
		uint32_t sent; /* atomic */
		uint32_t answered, taken;
		int code; /* why the first one was refused; 0: none was */
		char text[RT_TEXT_LEN];
	} grow;
	union {
		struct rt_msg_header h;
		uint64_t words[RT_MSG_MAX / sizeof(uint64_t)];
	} msg; /* the last message received */
};

/* Waits for a message of this type; answers of RT_MSG_GROW are noted. Its length, or -errno:
 * -ECONNRESET: the peer has closed; -EPROTO: another type; the code of an RT_MSG_ERROR, its text in
 * err. */
int rt_conn_expect(struct ringtap_conn *c, uint16_t type, int *fds, unsigned fd_max,
	unsigned *fd_count, int timeout_ms, char *err, size_t errlen);

/* Closes the connection; what is known of the application stays. */
void rt_conn_hang_up(struct ringtap_conn *c);

/* Timeout of an answer, in milliseconds. */
static inline int rt_conn_timeout_ms(const struct ringtap_conn *c)
{
	return c->timeout_ms ? c->timeout_ms : rt_reader_limits.answer_ms;
}

#endif
