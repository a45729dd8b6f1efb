/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits runs of ringtap_capture_next(). Their records were checked, but the application can still
 * change them, so every length is checked again. */
#include <string.h>

#include "common/record.h"
#include "capture.h"
#include "export.h"

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

/* blocks is a private copy, which cannot change after the checks. False: an unknown interface. */
static bool renumber(const struct ringtap_run *run, uint8_t *blocks)
{
	struct rt_record r;

	for (uint64_t off = 0; !rt_record_read(blocks + off, run->bytes - off, &r); off += r.len) {
		if (r.if_index >= run->interface_count)
			return false;
		((struct rt_epb *)(blocks + off))->if_index = run->interfaces[r.if_index];
	}
	return true;
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
