/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of rt_deeds: check_ids compares it with a recording, check_fates with a session of
 * fates. */
#ifndef RINGTAP_E2E_APPS_RT_DEEDS_H
#define RINGTAP_E2E_APPS_RT_DEEDS_H

#include <stdint.h>

#define DEED_QUEUES 2  /* queues of each port; a thread polls both ports' queues of one number */
#define DEED_LEN    60 /* bytes of a frame, or of the second segment of one */

/* Every frame, and every second segment: addresses, then this. */
#define DEED_TYPE 0x88b5 /* an experiment, IEEE 802 */
struct deed_frame {
	uint8_t macs[12];
	uint8_t type[2];
	uint8_t made; /* 0: a received packet; 1: the application has made it */
	uint8_t reserved;
	uint64_t number; /* number of the packet among the thread's own, from 0 */
} __attribute__((packed));

/* A packet that was offered; a file has those of one thread in their order. */
struct deed {
	uint64_t number;
	uint8_t port, queue;
	uint8_t made;
	uint8_t has_id; /* that of the packet of this number, as it was received */
	uint32_t what;  /* for messages */
};

/* Fate of a received packet; a file has a byte for each number. */
enum deed_fate {
	DEED_OPEN,
	DEED_OFFERED,
	DEED_NOT_OFFERED,
	DEED_UNKNOWN /* offered, without its flags */
};

#endif
