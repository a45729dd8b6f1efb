/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters that also match packets inside of tunnels. */
#ifndef RINGTAP_PACKET_INNER_H
#define RINGTAP_PACKET_INNER_H

#include "filter.h"

/* Makes f, which is compiled from this expression, also match packets with a packet inside that the
 * expression matches: below VXLAN, Geneve, GRE, GTP-U, MPLS or IP in IP, two of them at most. The
 * other arguments are those of filter_compile(). 0, -ENOMEM or -EINVAL; on error f is as before,
 * and err has a sentence. */
int filter_add_inner(struct filter *f, const char *expression, enum ringtap_tags tags,
	uint16_t linktype, char *err, size_t err_len);

#endif
