/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices of the vhost library that are not ports: in a program that contains the library (a static
 * DPDK), calls pass no slots of the dynamic loader, which the probe could divert.
 */
#ifndef RINGTAP_TARGET_HIDDEN_VHOST_H
#define RINGTAP_TARGET_HIDDEN_VHOST_H

#include <stdbool.h>
#include <stdint.h>

#include "ringtap/reader.h"

/* Whether ports of this driver are such devices: where there are any, none is hidden. */
bool hidden_vhost_is_port(const char *driver);
/* Why the process has such devices that are not ports, as a clause; NULL: it has none, or that is
 * unknown. pid: 0: unknown. list: its ports; NULL: none of them is such a device. */
const char *hidden_vhost(uint32_t pid, const struct ringtap_list *list);

#endif
