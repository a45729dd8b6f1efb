/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture of events: what becomes of the packets of another capture, as entries of its file
 * (docs/format.md, Fates in files). */
#ifndef RINGTAP_FATES_EVENTS_H
#define RINGTAP_FATES_EVENTS_H

#include <stdbool.h>

#include "common/pcapng.h"
#include "common/proto.h"
#include "ringtap/fates.h"
#include "target/targets.h"

/* Attaches cap to all ports of a target, with the options of the other capture. The same filters
 * decide which packets have events; the other ports are only looked at. 0, or -errno after a
 * message of the command. */
int fate_events_attach(struct ringtap_capture *cap, const char *command, const struct target *t,
	const struct ringtap_capture_options *packets);
/* Whether interfaces of two captures are a port of one name. */
bool fate_same_port(const struct ringtap_interface *a, const struct ringtap_interface *b);
/* An entry of a packet; reason: the number, of a packet that is not offered; ns: when its fate was
 * noticed. */
struct rt_fates_packet fate_entry(uint64_t id, uint64_t ns, uint32_t interface, uint32_t queue,
	unsigned fate, uint8_t reason);

/* Reasons whose texts a file has; zeros when it begins. */
struct fate_texts {
	uint64_t known[1 << RT_IDS_SOURCE_BITS][(RINGTAP_REASON_OTHERS + 1) / 64];
};
/* Entries for those of n packets, at most RT_FATES_MOST, that the file lacks, into out, which has
 * room for n. Returns how many. */
uint32_t fate_new_texts(struct fate_texts *t, const struct ringtap_capture *cap,
	const struct rt_fates_packet *e, size_t n, struct rt_fates_reason *out);
/* An entry of a queue at the end. interface: of the file. */
struct rt_fates_queue fate_queue_entry(
	const struct ringtap_capture *cap, const struct ringtap_fate_queue *q, uint32_t interface);

#endif
