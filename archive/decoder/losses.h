/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that are not in the file: where, when, why. */
#ifndef RINGTAP_ARCHIVE_DECODER_LOSSES_H
#define RINGTAP_ARCHIVE_DECODER_LOSSES_H

#include <jansson.h>
#include <stdint.h>

enum loss_reason {
	LOSS_CAPTURE, /* between the application and the file */
	LOSS_NIC,     /* before the application: isb_ifdrop */
};

/* Losses at one place within a second. */
struct loss {
	int64_t ns; /* time of the first packet behind it, or of the statistics */
	uint64_t packets;
	uint32_t interface;
	uint32_t queue; /* or NO_QUEUE */
	uint8_t direction;
	uint8_t reason; /* enum loss_reason */
};

struct losses {
	struct loss *list;
	uint32_t count;
	uint64_t beyond; /* packets that there was no entry for */
};

void losses_add(struct losses *l, const struct loss *loss);
void losses_clear(struct losses *l);
/* NULL: no memory. */
json_t *losses_json(const struct losses *l);

#endif
