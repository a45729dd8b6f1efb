/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libringtap-archive: the rows of an archive's index out of a pcapng file. Private to the Python
 * package ringtap_archive, which loads it; both are of one version.
 *
 * A file is decoded as a sequence of parts, one for each hour in which packets of it begin. Packets
 * and flows of a part are read as Arrow C streams; schema.py has the columns. Nothing in a file is
 * trusted: what is malformed is null, and where a block is damaged the file ends, see
 * rt_archive_torn().
 *
 * Identifiers
 * -----------
 * They are the same on all hosts and of all versions: hops are found by them. All numbers are
 * little endian; addresses have 16 bytes, as in the columns. mix(a, b) is the exclusive or of both
 * halves of the 128-bit product a * b. Of words w[0] ... w[n - 1] of 64 bits:
 *
 *     h = n;  for each w: h = mix(w ^ K0, h ^ K1)
 *     K0 = 0x9e3779b97f4a7c15, K1 = 0xd1b54a32d192ed03
 *
 * flow_id: h of 5 words, as a signed number: address and address of both ends (2 words each), then
 * port | port << 16 | protocol << 32. The first end is that with the lower address (bytes
 * compared), at equal addresses that with the lower port. Ports are 0 where there are none: of
 * other protocols than TCP, UDP, UDP-Lite, DCCP and SCTP, of fragments after the first, and where
 * they are cut off. Of the outermost addresses.
 *
 * digest: (h ^ h >> 32) & 0xffffffff of these bytes, filled up with zeros to whole words:
 *
 *     0   source address 16
 *     16  destination address 16
 *     32  IP id 4 (IPv6: of the fragment header; 0: none)
 *     36  fragment offset in units of 8 bytes, and 0x8000 where more fragments follow, 2
 *     38  protocol 1, behind IPv6 extension headers
 *     39  version 1: 4 or 6
 *     40  IPv4: total length, IPv6: payload length, 4
 *     44  n, 4
 *     48  the first n bytes of the IP payload (IPv6: behind extension headers), those of the
 *         checksum of TCP, UDP, UDP-Lite, ICMP, ICMPv6 (2 each) and SCTP (4) as zeros
 *
 * n = min(L4 header + 64, bytes on the wire); the L4 header: TCP's data offset * 4 (20 at least),
 * UDP, UDP-Lite, ICMP and ICMPv6 8, SCTP 12, of others and of fragments after the first 0. If the
 * snaplen has cut the packet before that: n = L4 header + the rest in whole units of 16 bytes; no
 * digest if the header is cut. So digests can be compared if both ends have captured 64 bytes of
 * payload, or (nearly always) with the same snaplen.
 */
#ifndef RINGTAP_ARCHIVE_DECODER_DECODER_H
#define RINGTAP_ARCHIVE_DECODER_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include "arrow.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rt_archive;

enum {
	RT_ARCHIVE_LEAN = 1,      /* tcp_seq and ip_id are null */
	RT_ARCHIVE_NO_DIGEST = 2, /* digest is null */
	RT_ARCHIVE_NO_FLOWS = 4,
	RT_ARCHIVE_BY_FLOW = 8, /* rows of a batch are in the order of sorted.h */
};

/* Decodes the pcapng file of this descriptor, which must be seekable and stays the caller's. 0;
 * -EBADMSG: it is none, see rt_archive_torn(); -errno. Close it in any case. */
int rt_archive_open(struct rt_archive **out, int fd, unsigned flags);
/* The same of memory, which must live as long as *out. */
int rt_archive_memory(struct rt_archive **out, const void *data, size_t len, unsigned flags);
/* Goes on with streams that were not released yet; batches may outlive all. */
void rt_archive_close(struct rt_archive *a);

/* An error of a stream stays: all that is read later has it, too. */

/* Goes on with the next part, once the packets of the one before have been read to their end and
 * the stream of its flows was released. 1; 0: there is none; -EBUSY: not yet; -errno. A file
 * without packets has one part. */
int rt_archive_part_next(struct rt_archive *a);
/* The packets of the part, as a stream of batches in file order; with RT_ARCHIVE_BY_FLOW, rows of a
 * batch in the order of their flows. To be read once. */
int rt_archive_part_packets(struct rt_archive *a, struct ArrowArrayStream *out);
/* Once packets have been read to their end: the flows, sorted by flow_id. To be read once. */
int rt_archive_part_flows(struct rt_archive *a, struct ArrowArrayStream *out);
/* Once packets have been read to their end, and before flows: what becomes of packets of the part
 * with fates behind its end, up to a minute later. Reads on in the file, and where that ends, in
 * this one, which may be its successor; it is left out where it is of another recording or damaged.
 * fd: stays the caller's; -1: there is none. 1: the flows are now others than those of the part
 * alone; 0; -errno. */
int rt_archive_part_later(struct rt_archive *a, int fd);
/* Begin of the part's pcapng, instead of the bytes before rt_archive_part_range(): section
 * header and interfaces. Empty for the first part. Valid until the next part. */
const void *rt_archive_part_header(const struct rt_archive *a, size_t *len);
/* The bytes of the file that belong to the part; end is known with the last packet. */
void rt_archive_part_range(const struct rt_archive *a, uint64_t *begin, uint64_t *end);
/* Offsets of blocks in the file, at least 1 MiB apart, within the range. Valid until the next part.
 */
const uint64_t *rt_archive_part_cuts(const struct rt_archive *a, size_t *count);
/* Interfaces, losses, times, section and counters as JSON. The caller frees it. NULL: no memory. */
char *rt_archive_part_info(const struct rt_archive *a);
/* Where and why the file is damaged; NULL: it is not, as far as it has been read. */
const char *rt_archive_torn(const struct rt_archive *a);

/* Writes a classic pcap file as pcapng. 1: the file is not in that format, nothing was written; 0;
 * -errno. What is wrong with its end is in torn, an empty text where it is whole. */
int rt_archive_convert(int from, int to, char *torn, size_t size);
/* Frees what these functions return. */
void rt_archive_free(void *p);
/* The version of the project. */
const char *rt_archive_version(void);

#ifdef __cplusplus
}
#endif

#endif
