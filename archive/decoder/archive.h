/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a decoder: shared by decoder.c and info.c. */
#ifndef RINGTAP_ARCHIVE_DECODER_ARCHIVE_H
#define RINGTAP_ARCHIVE_DECODER_ARCHIVE_H

#include <stdbool.h>

#include "batch.h"
#include "clock.h"
#include "decoder.h"
#include "flows.h"
#include "losses.h"
#include "sorted.h"
#include "walk.h"

struct part {
	int64_t hour; /* since the epoch, of its first packet */
	uint64_t begin, end;
	uint8_t *header; /* a copy: the section may end with this part */
	size_t header_len;
	int64_t first_ns, last_ns; /* the least and the greatest */
	uint64_t packets;
	bool late; /* there are packets of an earlier hour */
	uint64_t *cuts;
	size_t cut_count;
	uint64_t last_cut;
	struct losses losses;
	struct clock clock;
};

enum state {
	STATE_OPEN,    /* no part yet */
	STATE_PACKETS, /* the part's packets are being read */
	STATE_READ,    /* and are at their end: another part follows */
	STATE_END,     /* no part follows */
};

struct rt_archive {
	unsigned flags;
	struct walk walk;
	enum state state;
	struct part part;
	struct block pending; /* the packet that the next part begins with */
	bool has_pending;
	const struct batch_kind *packets;
	struct sorted sorted;
	struct pool *pool, *flow_pool;
	struct flows *flows;
	struct flow_reader *flow_reader; /* while its stream is open */
	unsigned streams;                /* that were not released yet */
	bool flows_opened;               /* one of them is of flows */
	bool closed;                     /* goes with the last of them */
	char error[160];                 /* error of the streams */
	int broken; /* -errno of a stream: nothing behind it is read, so that no part looks whole */
};

#endif
