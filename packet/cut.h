/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths of packets to capture, as a program whose value is the length. */
#ifndef RINGTAP_PACKET_CUT_H
#define RINGTAP_PACKET_CUT_H

#include <stdbool.h>

#include "filter.h"

#define CUT_ARG "headers|l4+N|N[:FILTER]"
#define CUT_MAX 16

/* Packets that the filter matches are cut after bytes, or after their headers up to that of the
 * transport protocol and as many bytes more. */
struct cut {
	bool headers;
	uint32_t bytes;
	const char *filter; /* NULL: all packets */
};

/* Parses CUT_ARG. 0 or -EINVAL. filter points into text. */
int cut_parse(struct cut *c, const char *text);

/* Makes f a program that lets the same packets pass, with the length to capture of each as its
 * value: by the first cut whose filter matches, and if none does, all of it. The other arguments
 * are those of filter_compile_inner(), for the filters of the cuts. 0, -ENOMEM or -EINVAL; on error
 * f is as before, and err has a sentence. */
int cut_apply(struct filter *f, const struct cut *cuts, unsigned count, bool inner,
	enum ringtap_tags tags, uint16_t linktype, char *err, size_t err_len);

#endif
