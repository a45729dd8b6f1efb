/* SPDX-License-Identifier: BSD-3-Clause */
/* Enhanced Packet Blocks to pcap with nanoseconds (IETF draft-ietf-opsawg-pcap). */
#ifndef RINGTAP_CLI_RECORD_CONVERT_H
#define RINGTAP_CLI_RECORD_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#define PCAP_FILE_HEADER   24u /* bytes */
#define PCAP_RECORD_HEADER 16u

/* Writes the file's header, PCAP_FILE_HEADER bytes. */
void pcap_file_header(uint8_t *dst, uint32_t snaplen);

/* Converts len bytes of whole blocks; a record is never longer than its block, so dst needs len
 * bytes. Returns the bytes written, or -EBADMSG. */
int64_t pcap_convert(uint8_t *dst, const uint8_t *epbs, uint64_t len);

/* As ringtap_run_fit(), for the records that the blocks would become: how many of the blocks fit
 * into max bytes; *len is what they take up now. */
uint64_t pcap_fit(const uint8_t *epbs, uint64_t len, uint64_t max, uint64_t *fit_len);

#endif
