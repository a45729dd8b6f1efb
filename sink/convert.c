/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "convert.h"
#include "base/util.h"

struct file_header {
	uint32_t magic; /* 0xa1b23c4d: nanoseconds */
	uint16_t major, minor;
	uint32_t zone, accuracy; /* always 0 */
	uint32_t snaplen;
	uint32_t linktype;
};
static_assert(sizeof(struct file_header) == PCAP_FILE_HEADER, "pcap, section 4");

struct record_header {
	uint32_t seconds, nanoseconds; /* since the epoch, until 2106 */
	uint32_t cap_len, orig_len;
};
static_assert(sizeof(struct record_header) == PCAP_RECORD_HEADER, "pcap, section 5");

void pcap_file_header(uint8_t *dst, uint32_t snaplen, uint16_t linktype)
{
	const struct file_header h = {.magic = 0xa1b23c4d,
		.major = 2,
		.minor = 4,
		.snaplen = snaplen,
		.linktype = linktype};

	memcpy(dst, &h, sizeof(h));
}

int64_t pcap_convert(uint8_t *dst, struct ringtap_packets *it, const struct ringtap_run *run)
{
	const struct ringtap_packet *p;
	uint8_t *start = dst;

	ringtap_packets_start(it, run);
	while ((p = ringtap_packet_next(it))) {
		const struct record_header h = {.seconds = (uint32_t)(p->ns / NS_PER_S),
			.nanoseconds = (uint32_t)(p->ns % NS_PER_S),
			.cap_len = p->caplen,
			.orig_len = p->length};

		memcpy(dst, &h, sizeof(h));
		memcpy(dst + sizeof(h), p->data, p->caplen);
		dst += sizeof(h) + p->caplen;
	}
	return ringtap_packets_error(it) ?: dst - start;
}

uint64_t pcap_fit(struct ringtap_packets *it, const struct ringtap_run *run, uint64_t max)
{
	const struct ringtap_packet *p;
	uint64_t packets = 0;

	ringtap_packets_start(it, run);
	while ((p = ringtap_packet_next(it)) && PCAP_RECORD_HEADER + p->caplen <= max) {
		max -= PCAP_RECORD_HEADER + p->caplen;
		packets++;
	}
	return packets;
}
