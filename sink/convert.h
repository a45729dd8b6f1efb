/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to pcap with nanoseconds (IETF draft-ietf-opsawg-pcap). */
#ifndef RINGTAP_SINK_CONVERT_H
#define RINGTAP_SINK_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include "ringtap/reader.h"

#define PCAP_FILE_HEADER   24u /* bytes */
#define PCAP_RECORD_HEADER 16u

/* Writes the file's header, PCAP_FILE_HEADER bytes. */
void pcap_file_header(uint8_t *dst, uint32_t snaplen, uint16_t linktype);

/* Converts the packets of a run, with an iterator to use for it; a record is never longer than in
 * pcapng, so dst needs run->bytes bytes. Returns the bytes written, or -EBADMSG. */
int64_t pcap_convert(uint8_t *dst, struct ringtap_packets *it, const struct ringtap_run *run);

/* How many of the first packets of a run fit, converted, into max bytes. */
uint64_t pcap_fit(struct ringtap_packets *it, const struct ringtap_run *run, uint64_t max);

#endif
