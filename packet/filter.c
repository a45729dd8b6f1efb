/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"

static_assert(sizeof(struct ringtap_insn) == sizeof(struct bpf_insn), "copied as they are");

/* The others that ports have are the same. */
int filter_dlt(uint16_t linktype)
{
	return linktype == RINGTAP_LINKTYPE_RAW ? DLT_RAW : linktype;
}

static int compile(pcap_t *pcap, struct bpf_program *prog, enum ringtap_tags tags, const char *text)
{
	return ringtap_filter_compile(
		pcap_compile, tags, pcap, prog, text, 1, PCAP_NETMASK_UNKNOWN);
}

/* The error of libpcap, and whether only capitals are wrong. */
static void describe(
	pcap_t *pcap, enum ringtap_tags tags, const char *expression, char *err, size_t err_len)
{
	struct bpf_program prog;
	char *lower = strdup(expression);

	snprintf(err, err_len, "%s", pcap_geterr(pcap));
	for (char *c = lower; c && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (lower && strcmp(lower, expression) && !compile(pcap, &prog, tags, lower)) {
		size_t len = strlen(err);

		snprintf(err + len, err_len - len, "; keywords are in lower case, as in '%s'",
			lower);
		pcap_freecode(&prog);
	}
	free(lower);
}

int filter_compile(struct filter *f, const char *expression, enum ringtap_tags tags,
	uint16_t linktype, char *err, size_t err_len)
{
	struct bpf_program prog;
	pcap_t *pcap;
	int ret = 0;

	*f = (struct filter){0};
	if (!expression || !*expression)
		return 0;
	pcap = pcap_open_dead(filter_dlt(linktype), RINGTAP_SNAPLEN_MAX);
	if (!pcap)
		return -ENOMEM;
	if (compile(pcap, &prog, tags, expression)) {
		describe(pcap, tags, expression, err, err_len);
		pcap_close(pcap);
		return -EINVAL;
	}
	if (ringtap_filter_check((const struct ringtap_insn *)prog.bf_insns, prog.bf_len)) {
		snprintf(err, err_len,
			"no application can run it: it has a loop (protochain), or needs what "
			"only the kernel knows of a packet (ifindex)");
		ret = -EINVAL;
		goto out;
	}
	f->len = prog.bf_len;
	f->insns = malloc(prog.bf_len * sizeof(*f->insns));
	if (f->insns)
		memcpy(f->insns, prog.bf_insns, prog.bf_len * sizeof(*f->insns));
	else
		ret = -ENOMEM;
out:
	pcap_freecode(&prog);
	pcap_close(pcap);
	return ret;
}

void filter_free(struct filter *f)
{
	free(f->insns);
	*f = (struct filter){0};
}

void filter_dump(const struct filter *f)
{
	/* As tcpdump -d without an expression. */
	static const struct bpf_insn all = {.code = BPF_RET | BPF_K, .k = RINGTAP_SNAPLEN_MAX};

	if (!f->insns)
		puts(bpf_image(&all, 0));
	for (uint32_t i = 0; i < f->len; i++) {
		struct bpf_insn insn;

		memcpy(&insn, &f->insns[i], sizeof(insn));
		puts(bpf_image(&insn, (int)i));
	}
}
