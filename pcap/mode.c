/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be changed while packets flow: filter, direction, blocking. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

static_assert(sizeof(struct ringtap_insn) == sizeof(struct bpf_insn), "handed on as they are");

/* pcap_compile("") makes one instruction, "return snaplen": that is no filter. */
static bool takes_all(const struct bpf_program *prog)
{
	return prog->bf_len == 1 && prog->bf_insns[0].code == (BPF_RET | BPF_K) &&
	       prog->bf_insns[0].k != 0;
}

/* Into the applications. What they refuse (loops; a DPDK without BPF) is checked here, and so is
 * what was captured before they answered. */
static int install(struct handle *h)
{
	const struct ringtap_insn *insns = (const struct ringtap_insn *)h->filter.bf_insns;
	int ret = ringtap_capture_filter(h->cap, insns, insns ? h->filter.bf_len : 0);

	h->filter_here = ret != 0;
	if (ret == -EINVAL || ret == -ENOTSUP || ret == -E2BIG)
		ret = ringtap_capture_filter(h->cap, NULL, 0);
	for (int i = h->run_at; i < h->run_count; i++)
		h->runs[i].stale = true;
	return ret ? handle_fail(h, PCAP_ERROR, "setfilter: %s", ringtap_capture_error(h->cap)) : 0;
}

EXPORT int pcap_setfilter(pcap_t *p, struct bpf_program *prog)
{
	struct handle *h = handle_of(p);
	struct bpf_insn *copy = NULL;

	if (!h)
		return real()->pcap_setfilter(p, prog);
	if (!h->activated)
		return handle_not_activated(h);
	if (!prog)
		return handle_fail(h, PCAP_ERROR, "setfilter: No filter specified");
	if (!real()->bpf_validate(prog->bf_insns, (int)prog->bf_len))
		return handle_fail(h, PCAP_ERROR, "BPF program is not valid");
	if (!takes_all(prog)) {
		copy = malloc(prog->bf_len * sizeof(*copy));
		if (!copy)
			return handle_fail(h, PCAP_ERROR, "malloc: %s", strerror(ENOMEM));
		memcpy(copy, prog->bf_insns, prog->bf_len * sizeof(*copy));
	}
	free(h->filter.bf_insns);
	h->filter = (struct bpf_program){.bf_len = prog->bf_len, .bf_insns = copy};
	return install(h);
}

/* Checked packet by packet, as libpcap does on Linux: so it holds for those, too, that are waiting.
 */
EXPORT int pcap_setdirection(pcap_t *p, pcap_direction_t direction)
{
	struct handle *h = handle_of(p);

	if (!h)
		return real()->pcap_setdirection(p, direction);
	if (direction != PCAP_D_IN && direction != PCAP_D_OUT && direction != PCAP_D_INOUT)
		return handle_fail(h, PCAP_ERROR, "Invalid direction");
	if (!h->activated)
		return handle_not_activated(h);
	h->direction = direction;
	return 0;
}

EXPORT int pcap_setnonblock(pcap_t *p, int nonblock, char *err)
{
	struct handle *h = handle_of(p);

	if (!h)
		return real()->pcap_setnonblock(p, nonblock, err);
	h->nonblock = nonblock;
	return 0;
}

EXPORT int pcap_getnonblock(pcap_t *p, char *err)
{
	struct handle *h = handle_of(p);

	if (!h)
		return real()->pcap_getnonblock(p, err);
	return h->activated ? h->nonblock : handle_not_activated(h);
}
