/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens a capture by a name and a filter expression, as `ringtap record APP:PORT -f FILTER` does.
 * All of it is inline: a program that includes it is linked with libpcap, which libringtap does
 * without.
 */
#ifndef RINGTAP_OPEN_H
#define RINGTAP_OPEN_H

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps.h"
#include "reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Opening: an application and a filter by their names ------------------------------------- */

/* pcap_compile() or a function that replaces it. */
typedef int (*ringtap_compile_fn)(
	pcap_t *p, struct bpf_program *out, const char *expression, int optimize, bpf_u_int32 mask);

/* Packets with VLAN tags in filters. */
enum ringtap_tags {
	RINGTAP_TAGS_ANY, /* filters match packets with and without tags, unless they say "vlan" */
	RINGTAP_TAGS_AS_IS, /* libpcap's meaning: "udp port 53" matches no tagged packet */
};

/* Compiles an expression by compile. RINGTAP_TAGS_ANY: the program decides by the tags of a packet.
 * Without, with one, and with two (TPIDs 0x8100, 0x88a8, 0x9100) it applies the expression behind
 * them. An expression that says "vlan", or tests a TPID itself, is compiled as it is, and so is one
 * whose program would be longer than 4096 instructions. For Ethernet: a frame that is shorter than
 * its header matches nothing. The caller frees by pcap_freecode(). Returns what compile() does for
 * the expression. */
int ringtap_filter_compile(ringtap_compile_fn compile, enum ringtap_tags tags, pcap_t *p,
	struct bpf_program *out, const char *expression, int optimize, bpf_u_int32 mask);

/* Members that are 0 have their defaults. */
struct ringtap_open_options {
	const struct ringtap_capture_options *capture; /* NULL: defaults */
	unsigned directions;                           /* 0: both */
	uint32_t snaplen;                              /* bytes; 0: all */
	enum ringtap_tags tags;
	char error[256]; /* why it failed: a sentence without a full stop */
};

/* Whether a word of that length is the application's name or process id. */
static inline bool ringtap_open_names(
	const struct ringtap_apps *apps, size_t i, const char *word, size_t length)
{
	const char *name = ringtap_apps_name(apps, i);
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", (unsigned)ringtap_apps_pid(apps, i));
	return (strlen(name) == length && !memcmp(name, word, length)) ||
	       (strlen(pid) == length && !memcmp(pid, word, length));
}

/* Attaches to what source means. Tries the whole of it first, as names may have colons. */
static inline int ringtap_open_source(struct ringtap_capture *cap, const char *source,
	struct ringtap_target *target, struct ringtap_open_options *opts)
{
	const char *colon = source + strlen(source);
	struct ringtap_apps *apps;
	int ret = ringtap_apps_find(&apps);

	if (ret)
		return ret;
	ret = -ESRCH;
	for (;;) {
		for (size_t i = 0; i < ringtap_apps_count(apps) && ret == -ESRCH; i++) {
			if (!ringtap_open_names(apps, i, source, (size_t)(colon - source)))
				continue;
			target->port = *colon ? colon + 1 : NULL;
			ret = ringtap_capture_attach(
				cap, ringtap_apps_dir(apps, i), target, 1, opts->capture);
			snprintf(
				opts->error, sizeof(opts->error), "%s", ringtap_capture_error(cap));
		}
		while (colon != source && *--colon != ':')
			;
		if (ret != -ESRCH || colon == source)
			break;
	}
	if (ret == -ESRCH)
		snprintf(opts->error, sizeof(opts->error),
			"no DPDK application with the probe is called '%s'", source);
	ringtap_apps_free(apps);
	return ret;
}

/* Captures from source, an application's name (its file-prefix) or process id, with :PORT (a name
 * or number) behind it for one port: packets flow from then on. filter: a libpcap expression for
 * Ethernet; NULL: all packets. opts: NULL, or read, and its error is written. The caller closes
 * *out with ringtap_capture_close(). 0, or -errno, and *out is NULL: -ESRCH: there is no such
 * application; -EINVAL: the filter cannot be compiled, or no application can run it; others as
 * ringtap_capture_attach(). */
static inline int ringtap_capture_open(struct ringtap_capture **out, const char *source,
	const char *filter, struct ringtap_open_options *opts)
{
	struct ringtap_open_options defaults;
	struct ringtap_target target;
	struct bpf_program program;
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, RINGTAP_SNAPLEN_MAX);
	int ret = pcap ? ringtap_capture_create(out, NULL) : -ENOMEM;

	memset(&defaults, 0, sizeof(defaults));
	memset(&target, 0, sizeof(target));
	memset(&program, 0, sizeof(program));
	opts = opts ? opts : &defaults;
	opts->error[0] = 0;
	if (ret || !pcap)
		goto out;
	target.queue = -1;
	target.directions = opts->directions ? opts->directions : RINGTAP_RX | RINGTAP_TX;
	target.snaplen = opts->snaplen;
	if (filter && ringtap_filter_compile(pcap_compile, opts->tags, pcap, &program, filter, 1,
			      PCAP_NETMASK_UNKNOWN)) {
		snprintf(opts->error, sizeof(opts->error), "filter: %s", pcap_geterr(pcap));
		ret = -EINVAL;
	} else {
		target.filter = (const struct ringtap_insn *)program.bf_insns;
		target.filter_len = program.bf_len;
		ret = ringtap_open_source(*out, source, &target, opts);
	}
	if (!ret)
		ret = ringtap_capture_start(*out);
	pcap_freecode(&program);
	if (ret) {
		ringtap_capture_close(*out);
		*out = NULL;
	}
out:
	if (pcap)
		pcap_close(pcap);
	if (ret && !opts->error[0])
		snprintf(opts->error, sizeof(opts->error), "%s", strerror(-ret));
	return ret;
}

#ifdef __cplusplus
}
#endif

#endif
