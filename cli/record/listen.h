/* SPDX-License-Identifier: BSD-3-Clause */
/* record --listen: PCAP-over-IP. */
#ifndef RINGTAP_CLI_RECORD_LISTEN_H
#define RINGTAP_CLI_RECORD_LISTEN_H

#include "config.h"

/* A network of --allow. 0, or -EINVAL after a message. */
int listen_allow(struct record_config *cfg, const char *text);
/* Checks what --listen cannot be combined with. 0, or -EINVAL after a message. */
int listen_check(const struct record_config *cfg);
/* Listens until a signal comes. Each client gets a recording of its own: record() writes it to
 * standard output, in a process of its own. Returns enum status. */
int listen_run(struct record_config *cfg, int (*record)(struct record_config *cfg));

#endif
