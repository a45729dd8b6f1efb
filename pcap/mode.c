/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings that can change during a capture: filter, direction, blocking. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/program.h"
#include "handle.h"

static_assert(sizeof(struct ringtap_insn) == sizeof(struct bpf_insn), "cast to each other");

/* pcap_compile("") makes one instruction, "return snaplen": all packets pass. */
static bool takes_all(const struct bpf_program *prog)
{
	return prog->bf_len == 1 && prog->bf_insns[0].code == (BPF_RET | BPF_K) &&
	       prog->bf_insns[0].k != 0;
}

static struct bpf_insn *copy_of(const struct bpf_program *prog)
{
	size_t size = prog->bf_len * sizeof(*prog->bf_insns);
	struct bpf_insn *copy = malloc(size);

	return copy ? memcpy(copy, prog->bf_insns, size) : NULL;
}

static bool needs_kernel(const struct bpf_program *prog)
{
	const struct rt_insn *insns = (const struct rt_insn *)prog->bf_insns;

	for (uint32_t i = 0; i < prog->bf_len; i++) {
		if (rt_insn_loads_ancillary(&insns[i]) && !rt_insn_loads_direction(&insns[i]))
			return true;
	}
	return false;
}

/* A filter's fields of struct handle; zeroed: all packets pass. */
struct filter {
	struct bpf_program prog;
	struct bpf_insn *checks[2];
};

static void filter_free(struct filter *f)
{
	free(f->prog.bf_insns);
	free(f->checks[RT_DIR_RX]);
	free(f->checks[RT_DIR_TX]);
}

static bool filter_make(struct filter *f, const struct bpf_program *prog)
{
	*f = (struct filter){0};
	if (takes_all(prog))
		return true;
	f->prog = (struct bpf_program){.bf_len = prog->bf_len, .bf_insns = copy_of(prog)};
	for (int dir = 0; dir < 2; dir++) {
		f->checks[dir] = copy_of(prog);
		if (f->checks[dir])
			rt_program_set_direction((struct rt_insn *)f->checks[dir], prog->bf_len,
				(enum rt_direction)dir);
	}
	if (f->prog.bf_insns && f->checks[RT_DIR_RX] && f->checks[RT_DIR_TX])
		return true;
	filter_free(f);
	return false;
}

/* Installs a filter in the applications. *here: they reject it (loops; a DPDK without BPF), and the
 * library runs it. Packets that were captured before they answered are marked stale, and the
 * library filters these, too. 0 or PCAP_ERROR. */
static int install(struct handle *h, const struct bpf_program *prog, bool *here)
{
	const struct ringtap_insn *insns = (const struct ringtap_insn *)prog->bf_insns;
	int ret = ringtap_capture_filter(h->cap, insns, insns ? prog->bf_len : 0);

	*here = ret != 0;
	if (ret == -EINVAL || ret == -ENOTSUP || ret == -E2BIG)
		ret = ringtap_capture_filter(h->cap, NULL, 0);
	for (int i = h->run_at; i < h->run_count; i++)
		h->runs[i].stale = true;
	return ret ? handle_fail(h, PCAP_ERROR, "setfilter: %s", ringtap_capture_error(h->cap)) : 0;
}

void mode_settle(struct handle *h)
{
	bool here;

	if (ringtap_capture_filtering(h->cap))
		return;
	h->unsettled = false;
	/* Otherwise the library goes on to filter all packets. */
	if (!install(h, &h->filter, &here))
		h->filter_here = here;
	else
		h->unsettled = ringtap_capture_filtering(h->cap);
}

/* After a failure each application may run either filter or none, and one may not have answered.
 * The old filter stays valid: the library runs it until mode_settle() has installed it again. */
EXPORT int pcap_setfilter(pcap_t *p, struct bpf_program *prog)
{
	struct handle *h = handle_of(p);
	struct filter new, old;
	bool here;
	int ret;

	if (!h)
		return real()->pcap_setfilter(p, prog);
	if (!h->activated)
		return handle_not_activated(h);
	if (!prog)
		return handle_fail(h, PCAP_ERROR, "setfilter: No filter specified");
	if (!real()->bpf_validate(prog->bf_insns, (int)prog->bf_len))
		return handle_fail(h, PCAP_ERROR, "BPF program is not valid");
	if (needs_kernel(prog))
		return handle_fail(h, PCAP_ERROR,
			"setfilter: the filter needs information that only the kernel has");
	if (!filter_make(&new, prog))
		return handle_fail(h, PCAP_ERROR, "malloc: %s", strerror(ENOMEM));
	ret = install(h, &new.prog, &here);
	if (ret) {
		filter_free(&new);
		h->filter_here = h->unsettled = true;
		return ret;
	}
	h->filter_here = here;
	h->unsettled = false;
	old = (struct filter){h->filter, {h->checks[RT_DIR_RX], h->checks[RT_DIR_TX]}};
	filter_free(&old);
	h->filter = new.prog;
	memcpy(h->checks, new.checks, sizeof(h->checks));
	return 0;
}

/* Checked packet by packet, as libpcap does on Linux: it applies to waiting packets, too. */
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
