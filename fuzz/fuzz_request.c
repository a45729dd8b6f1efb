/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages to the probe: the input is one datagram, as it arrives at its socket. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/ipc.h"
#include "common/program.h"
#include "probe/capture/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The probe shifts by the bits, and keeps a table of that size for each thread. */
static void check_first(const struct rt_msg_first *m)
{
	if (!m->limit || m->limit > RT_FIRST_MAX || m->packets > 1 || m->inner > 1)
		abort();
	if (m->bits < RT_FIRST_BITS_MIN || m->bits > RT_FIRST_BITS_MAX)
		abort();
}

static void check_sample(const struct rt_msg_sample *m)
{
	if (m->every < 2 || m->every > RT_SAMPLE_MAX || m->every & (m->every - 1))
		abort();
}

/* Guarantees that the probe relies on once a request has been accepted. */
static void check(const struct rt_request *r)
{
	if (r->open.flags & RT_OPEN_FIRST)
		check_first(&r->first);
	if (r->open.flags & RT_OPEN_SAMPLE)
		check_sample(&r->sample);
	if (!r->open.target_count || r->open.target_count > RT_MAX_TARGETS)
		abort();
	if (r->open.ids >> RT_IDS_SOURCE_SHIFT >> RT_IDS_SOURCE_BITS)
		abort();
	for (uint32_t i = 0; i < r->open.target_count; i++) {
		const struct rt_msg_target *w = &r->targets[i];

		if (strlen(w->port) >= RT_NAME_LEN || !w->snaplen || !w->directions)
			abort();
		if (w->insn_first == RT_NO_FILTER)
			continue;
		if (rt_program_valid(&r->insns[w->insn_first], w->insn_count) &&
			r->insns[w->insn_first + w->insn_count - 1].code % 8 != 6)
			abort(); /* it does not end with a return */
	}
}

static void check_filter(const void *msg, size_t len)
{
	char err[RT_TEXT_LEN] = "";
	struct rt_insn *insns;
	uint32_t count;

	if (rt_request_filter(msg, len, &insns, &count, err) == 0 && count)
		(void)rt_program_valid(insns, count);
	free(insns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t buf[RT_MSG_MAX / sizeof(uint64_t)];
	const struct rt_msg_header *h = (const void *)buf;
	char err[RT_TEXT_LEN] = "";
	struct rt_request req;
	int pair[2], len;

	if (size < sizeof(*h) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return 0;
	if (send(pair[0], data, size, MSG_DONTWAIT) == (ssize_t)size) {
		len = rt_msg_recv(pair[1], buf, sizeof(buf), NULL, 0, NULL, 0);
		if (len > 0 && (h->type == RT_MSG_OPEN || h->type == RT_MSG_OPEN_IDS)) {
			if (rt_request_parse(&req, buf, (size_t)len, err) == 0)
				check(&req);
			rt_request_free(&req);
		}
		if (len > 0 && h->type == RT_MSG_FILTER)
			check_filter(buf, (size_t)len);
	}
	close(pair[0]);
	close(pair[1]);
	return 0;
}
