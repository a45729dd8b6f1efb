/* SPDX-License-Identifier: BSD-3-Clause */
/* Link types of files whose packets are parsed: https://www.tcpdump.org/linktypes.html */
#ifndef RINGTAP_COMMON_LINK_TYPES_H
#define RINGTAP_COMMON_LINK_TYPES_H

enum {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14,
	LINK_RAW = 101,
	LINK_LOOP = 108,
	LINK_SLL = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_SLL2 = 276,
};

#endif
