/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "common/pcapng.h"
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

void pcap_file_header(uint8_t *dst, uint32_t snaplen)
{
	const struct file_header h = {.magic = 0xa1b23c4d,
		.major = 2,
		.minor = 4,
		.snaplen = snaplen,
		.linktype = RT_PCAPNG_ETHERNET};

	memcpy(dst, &h, sizeof(h));
}

int64_t pcap_convert(uint8_t *dst, const uint8_t *epbs, uint64_t len)
{
	uint8_t *start = dst;
	struct rt_packet p;

	for (uint64_t at = 0; at < len;) {
		int64_t n = rt_pcapng_packet(epbs + at, len - at, &p);
		struct record_header h;

		if (n < 0)
			return n;
		h = (struct record_header){.seconds = (uint32_t)(p.time_ns / NS_PER_S),
			.nanoseconds = (uint32_t)(p.time_ns % NS_PER_S),
			.cap_len = p.cap_len,
			.orig_len = p.orig_len};
		memcpy(dst, &h, sizeof(h));
		memcpy(dst + sizeof(h), p.data, p.cap_len);
		dst += sizeof(h) + p.cap_len;
		at += (uint64_t)n;
	}
	return dst - start;
}

uint64_t pcap_fit(const uint8_t *epbs, uint64_t len, uint64_t max, uint64_t *fit_len)
{
	uint64_t packets = 0;
	struct rt_packet p;

	*fit_len = 0;
	while (*fit_len < len) {
		int64_t n = rt_pcapng_packet(epbs + *fit_len, len - *fit_len, &p);

		if (n < 0 || PCAP_RECORD_HEADER + p.cap_len > max)
			break;
		max -= PCAP_RECORD_HEADER + p.cap_len;
		*fit_len += (uint64_t)n;
		packets++;
	}
	return packets;
}
