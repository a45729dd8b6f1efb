/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/proto.h"
#include "reader/export.h"
#include "ringtap/open.h"

#define TAGS_MAX 2u /* in a packet: programs are chosen by them */

static const uint16_t tpids[] = {0x8100, 0x88a8, 0x9100};
#define TPIDS (sizeof(tpids) / sizeof(tpids[0]))

/* The load of a TPID, its jumps, and the jump to a program. */
#define CHOICE (1 + TPIDS + 1)
#define HEAD   (TAGS_MAX * CHOICE + 1)

static bool says_vlan(const char *text)
{
	for (const char *at = text; (at = strstr(at, "vlan")); at += 4) {
		bool begins =
			at == text || !(isalnum((unsigned char)at[-1]) || strchr("-._", at[-1]));

		if (begins && !isalnum((unsigned char)at[4]))
			return true;
	}
	return false;
}

static bool tests_tpid(const struct bpf_program *prog)
{
	for (unsigned i = 0; i < prog->bf_len; i++)
		for (unsigned k = 0; k < TPIDS; k++)
			if (prog->bf_insns[i].code == (BPF_JMP | BPF_JEQ | BPF_K) &&
				prog->bf_insns[i].k == tpids[k])
				return true;
	return false;
}

/* The same decision for packets of all kinds. */
static bool is_constant(const struct bpf_program *prog)
{
	return prog->bf_len == 1;
}

/* Goes to the next choice if the halfword at offset is a TPID, else to target. */
static struct bpf_insn *put_choice(
	struct bpf_insn *at, const struct bpf_insn *head, uint32_t offset, uint32_t target)
{
	uint32_t out;

	*at++ = (struct bpf_insn)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offset);
	for (unsigned k = 0; k < TPIDS; k++)
		*at++ = (struct bpf_insn)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, tpids[k], (uint8_t)(TPIDS - k), 0);
	out = target - (uint32_t)(at - head) - 1;
	*at++ = (struct bpf_insn)BPF_STMT(BPF_JMP | BPF_JA, out);
	return at;
}

/* -1: no memory, or too long. */
static int join(const struct bpf_program progs[TAGS_MAX + 1], struct bpf_program *out)
{
	uint32_t starts[TAGS_MAX + 1], len = HEAD;
	struct bpf_insn *insns, *at;

	for (unsigned i = 0; i <= TAGS_MAX; i++) {
		starts[i] = len;
		len += progs[i].bf_len;
	}
	insns = len <= RT_MAX_INSNS ? malloc(len * sizeof(*insns)) : NULL;
	if (!insns)
		return -1;
	at = insns;
	for (unsigned i = 0; i < TAGS_MAX; i++)
		at = put_choice(at, insns, 12 + 4 * i, starts[i]);
	*at++ = (struct bpf_insn)BPF_STMT(BPF_JMP | BPF_JA, starts[TAGS_MAX] - HEAD);
	for (unsigned i = 0; i <= TAGS_MAX; i++) {
		memcpy(at, progs[i].bf_insns, progs[i].bf_len * sizeof(*at));
		at += progs[i].bf_len;
	}
	*out = (struct bpf_program){.bf_len = len, .bf_insns = insns};
	return 0;
}

static int compile_tagged(ringtap_compile_fn compile, pcap_t *p, struct bpf_program *prog,
	const char *expression, unsigned tags, int optimize, bpf_u_int32 mask)
{
	char *text;
	int ret;

	if (asprintf(&text, "%s(%s)", tags == 1 ? "vlan and " : "vlan and vlan and ", expression) <
		0)
		return -1;
	ret = compile(p, prog, text, optimize, mask);
	free(text);
	return ret;
}

EXPORT int ringtap_filter_compile(ringtap_compile_fn compile, enum ringtap_tags tags, pcap_t *p,
	struct bpf_program *out, const char *expression, int optimize, bpf_u_int32 mask)
{
	struct bpf_program progs[TAGS_MAX + 1] = {{0}}, joined;
	int ret = compile(p, &progs[0], expression, optimize, mask);
	unsigned n = 1;

	if (ret)
		return ret;
	*out = progs[0];
	/* Three of a long one would not fit, and libpcap takes seconds for each. */
	if (tags == RINGTAP_TAGS_AS_IS || !expression || is_constant(out) ||
		says_vlan(expression) || tests_tpid(out) ||
		out->bf_len > RT_MAX_INSNS / (TAGS_MAX + 1))
		return 0;
	while (n <= TAGS_MAX &&
		!compile_tagged(compile, p, &progs[n], expression, n, optimize, mask))
		n++;
	if (n > TAGS_MAX && !join(progs, &joined)) {
		*out = joined;
		free(progs[0].bf_insns);
	}
	while (--n)
		free(progs[n].bf_insns);
	return 0;
}
