/* SPDX-License-Identifier: BSD-3-Clause */
/* flow_id and digest: decoder.h has the formulas. */
#ifndef RINGTAP_ARCHIVE_DECODER_IDENTITY_H
#define RINGTAP_ARCHIVE_DECODER_IDENTITY_H

#include <stdbool.h>

#include "common/layers.h"
#include "row.h"

/* Whether the source is the second end in flow_id. */
bool ends_turned(const struct ends *e);
int64_t flow_identity(const struct ends *e);
/* false: there is none, as headers are cut off. */
bool packet_digest(const struct ends *e, const struct layer_ip *ip, uint32_t *digest);

#endif
