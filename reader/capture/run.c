/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits runs of ringtap_capture_next(). Their records were checked, but the application can still
 * change them, so every length is checked again. */
#include <string.h>

#include "common/record.h"
#include "capture.h"
#include "reader/export.h"

/* Makes part the first packets of rest; fewer if a record has become invalid. */
static void walk(
	const struct ringtap_run *rest, uint64_t packets, uint64_t bytes, struct ringtap_run *part)
{
	struct rt_record r;

	part->packets = part->bytes = 0;
	while (part->packets < packets) {
		if (rt_record_read((const uint8_t *)rest->records + part->bytes,
			    rest->bytes - part->bytes, &r))
			return;
		if (r.len > bytes - part->bytes)
			return;
		part->bytes += r.len;
		part->packets++;
		part->last_ns = r.ns;
	}
}

/* Copies the fields that the caller's version of the structure has. */
static void copy_run(struct ringtap_run *to, const struct ringtap_run *from)
{
	size_t size = from->size;

	memcpy(to, from, size < sizeof(*from) ? size : sizeof(*from));
}

EXPORT uint64_t ringtap_run_take(
	struct ringtap_run *rest, uint64_t packets, uint64_t bytes, struct ringtap_run *part)
{
	struct rt_record r;

	copy_run(part, rest);
	if (!rest->packets || !rest->bytes) {
		part->packets = part->bytes = 0;
		return 0;
	}
	if (packets >= rest->packets && bytes >= rest->bytes) {
		rest->packets = rest->bytes = 0;
		return part->packets;
	}
	if (packets >= rest->packets)
		packets = rest->packets - 1; /* not all of them fit */
	walk(rest, packets, bytes, part);
	rest->records = (const uint8_t *)rest->records + part->bytes;
	rest->bytes -= part->bytes;
	rest->packets -= part->packets;
	if (part->packets && !rt_record_read(rest->records, rest->bytes, &r))
		rest->first_ns = r.ns;
	return part->packets;
}

/* The trailing length, which the way through the ring does not check, but readers of files do. */
static bool ends_with_its_length(const uint8_t *block, uint32_t len)
{
	uint32_t last;

	memcpy(&last, block + len - sizeof(last), sizeof(last));
	return last == len;
}

/* The copy is private: what is checked here stays as it is. False: a record is invalid. */
static bool renumber(const struct ringtap_run *run, uint8_t *blocks)
{
	uint64_t off = 0, packets = 0;
	struct rt_record r;

	for (; off < run->bytes; off += r.len, packets++) {
		if (rt_record_read(blocks + off, run->bytes - off, &r) ||
			r.if_index >= run->interface_count ||
			!ends_with_its_length(blocks + off, r.len))
			return false;
		((struct rt_epb *)(blocks + off))->if_index = run->interfaces[r.if_index];
	}
	return packets == run->packets;
}

EXPORT const void *ringtap_run_pcapng(const struct ringtap_run *run, void *buf, size_t size)
{
	if (!run->interfaces)
		return run->records;
	if (!buf || size < run->bytes)
		return NULL;
	memcpy(buf, run->records, run->bytes);
	return renumber(run, buf) ? buf : NULL;
}
