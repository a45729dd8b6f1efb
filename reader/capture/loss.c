/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the reasons of loss. */
#include <assert.h>
#include <stddef.h>

#include "common/segment.h"
#include "reader/export.h"
#include "ringtap/reader.h"

static const char *const names[] = {
	[RINGTAP_LOST_FULL] = "ring_full",
	[RINGTAP_LOST_NO_RING] = "no_ring",
	[RINGTAP_LOST_WAIT] = "wait",
	[RINGTAP_LOST_BAD] = "bad_mbuf",
	[RINGTAP_LOST_UNREADABLE] = "unreadable",
};

static_assert(sizeof(names) / sizeof(names[0]) == RT_LOSS_COUNT, "a name of each reason");
static_assert((int)RINGTAP_LOST_FULL == RT_LOSS_RING_FULL &&
		      (int)RINGTAP_LOST_NO_RING == RT_LOSS_NO_RING &&
		      (int)RINGTAP_LOST_WAIT == RT_LOSS_WAIT &&
		      (int)RINGTAP_LOST_BAD == RT_LOSS_BAD_MBUF &&
		      (int)RINGTAP_LOST_UNREADABLE == RT_LOSS_UNREADABLE,
	"the segment's numbers");

EXPORT const char *ringtap_loss_name(unsigned reason)
{
	return reason < RT_LOSS_COUNT ? names[reason] : NULL;
}
