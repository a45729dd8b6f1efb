/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of Open vSwitch that are interfaces of the kernel (internal, tap, system): `ringtap host`
 * captures on them, for as long as the recording lasts. */
#ifndef RINGTAP_CLI_RECORD_KERNEL_PORTS_H
#define RINGTAP_CLI_RECORD_KERNEL_PORTS_H

#include "base/child.h"
#include "target/capture_config.h"

struct kernel_ports {
	struct child host;
	char *specs[CAPTURE_IFACES_MAX]; /* targets instead of those given */
};

/* Replaces OVS:PORT by HOST:PORT, and starts the latter unless it runs. 0, or -errno after a
 * message. End in any case. */
int kernel_ports_begin(struct kernel_ports *k, struct capture_config *cfg);
void kernel_ports_end(struct kernel_ports *k);

#endif
