/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters that also match packets inside of tunnels. */
#ifndef RINGTAP_PACKET_INNER_H
#define RINGTAP_PACKET_INNER_H

#include <stdbool.h>

#include "filter.h"

/* As filter_compile(). inner: the filter also matches packets with a packet inside that the
 * expression matches: below VXLAN, Geneve, GRE, GTP-U, MPLS or IP in IP, two of them at most. */
int filter_compile_inner(struct filter *f, bool inner, const char *expression,
	enum ringtap_tags tags, uint16_t linktype, char *err, size_t err_len);

#endif
