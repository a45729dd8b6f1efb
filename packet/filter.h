/* SPDX-License-Identifier: BSD-3-Clause */
/* libpcap filter expressions. */
#ifndef RINGTAP_PACKET_FILTER_H
#define RINGTAP_PACKET_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "ringtap/open.h"

struct filter {
	struct ringtap_insn *insns; /* NULL: all packets */
	uint32_t len;
};

/* For packets of a LINKTYPE_…; only Ethernet has tags. NULL and "" mean all packets. On -EINVAL
 * libpcap's message is in err. The caller frees with filter_free(). */
int filter_compile(struct filter *f, const char *expression, enum ringtap_tags tags,
	uint16_t linktype, char *err, size_t err_len);
/* libpcap's number of a link type: DLT_…. */
int filter_dlt(uint16_t linktype);
void filter_free(struct filter *f);
/* Prints on standard output what tcpdump -d prints. */
void filter_dump(const struct filter *f);

#endif
