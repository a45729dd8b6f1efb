/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking over runs that ringtap_capture_next() has handed out: their records have been checked,
 * but they are still in memory that the application can write, so every length is checked again. */
#include <string.h>

#include "capture.h"
#include "export.h"

/* Length of the record at off, or 0 if it has become nonsense. */
static uint32_t length_at(const uint8_t *data, uint64_t off, uint64_t end)
{
	const struct rt_epb *e = (const struct rt_epb *)(data + off);
	uint32_t len;

	if (end - off < RT_EPB_MIN)
		return 0;
	len = rt_load(&e->total_len);
	return len >= RT_EPB_MIN && len % 4 == 0 && len <= end - off ? len : 0;
}

EXPORT uint64_t ringtap_run_prefix(const struct ringtap_run *run, uint64_t n, uint64_t *last_ns)
{
	uint64_t off = 0, last = run->last_ns;

	if (n < run->packets) {
		for (; n; n--) {
			const struct rt_epb *e = (const struct rt_epb *)(run->data + off);
			uint32_t len = length_at(run->data, off, run->len);

			if (!len)
				break;
			last = (uint64_t)e->ts_high << 32 | e->ts_low;
			off += len;
		}
	} else {
		off = run->len;
	}
	if (last_ns)
		*last_ns = last;
	return off;
}

EXPORT uint64_t ringtap_run_fit(const struct ringtap_run *run, uint64_t max, uint64_t *bytes)
{
	uint64_t off = 0, n = 0;

	if (run->len <= max) {
		*bytes = run->len;
		return run->packets;
	}
	for (;; n++) {
		uint32_t len = length_at(run->data, off, run->len);

		if (!len || off + len > max)
			break;
		off += len;
	}
	*bytes = off;
	return n;
}

EXPORT void ringtap_run_copy(const struct ringtap_capture *cap, const struct ringtap_run *run,
	uint64_t offset, uint64_t len, uint8_t *dst)
{
	const struct rt_source *s = &cap->sources[run->app];

	memcpy(dst, run->data + offset, len);
	if (!run->renumber)
		return;
	for (uint64_t off = 0; off < len;) {
		struct rt_epb *e = (struct rt_epb *)(dst + off);
		uint32_t n = length_at(dst, off, len);

		if (!n)
			return;
		e->if_index = e->if_index < s->if_known ? s->if_ids[e->if_index] : 0;
		off += n;
	}
}
