/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_PROBE_DPDK_PREFIX_H
#define RINGTAP_PROBE_DPDK_PREFIX_H

#include "common/proto.h"

/* EAL's --file-prefix, the last part of the runtime folder. */
void rt_prefix(char prefix[RT_NAME_LEN]);

#endif
