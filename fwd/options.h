/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RINGTAP_FWD_OPTIONS_H
#define RINGTAP_FWD_OPTIONS_H

#include "base/command.h"

enum {
	OPT_ROLE = 1,
	OPT_TX_FULL,
	OPT_VDEV,
	OPT_RING,
	OPT_PCI,
	OPT_NAME,
	OPT_SIZES,
	OPT_RATE,
	OPT_STAGES,
	OPT_DST_MAC,
	OPT_SRC_IP,
	OPT_DST_IP,
	OPT_SINK_RATE,
	OPT_PAGE_SIZE,
};

/* Its run() is main.c's business. */
extern const struct command cmd_fwd;

#endif
