/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the last whole block of a file whose end could not be written. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/segment.h"
#include "convert.h"
#include "sink_impl.h"

/* Length of the block whose first 16 bytes (as far as there are) are at head; 0: not sane. */
static uint64_t block_len(enum sink_format format, const uint32_t head[4])
{
	if (format == SINK_PCAP)
		return (uint64_t)PCAP_RECORD_HEADER + head[2];
	return head[1] < 12 || head[1] % 4 ? 0 : head[1];
}

uint64_t salvage_end(
	int fd, enum sink_format format, uint64_t start, uint64_t end, uint64_t *packets)
{
	char path[64];
	uint32_t head[4];
	uint64_t len;
	int rfd;

	/* A pcap file begins with a header that is not a record. */
	if (format == SINK_PCAP && start == 0)
		start = end < PCAP_FILE_HEADER ? end : PCAP_FILE_HEADER;
	if (format == SINK_OPAQUE || start == end)
		return start;
	/* The file was opened for writing only, and may have been renamed since. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rfd = open(path, O_RDONLY | O_CLOEXEC);
	if (rfd < 0)
		return start;
	while (start < end) {
		memset(head, 0, sizeof(head));
		if (pread(rfd, head, sizeof(head), (off_t)start) < 8)
			break;
		len = block_len(format, head);
		if (!len || len > end - start)
			break;
		start += len;
		*packets += format == SINK_PCAP || head[0] == RT_EPB_TYPE;
	}
	close(rfd);
	return start;
}
