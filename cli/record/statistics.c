/* SPDX-License-Identifier: BSD-3-Clause */
/* record -S: counts of each interface once a second, no packets. */
#include <errno.h>
#include <inttypes.h>

#include "counts.h"
#include "record.h"
#include "show/sheet.h"
#include "signals.h"
#include "base/util.h"

static void print(struct recorder *r)
{
	struct sheet t = {.heads = {"Interface", "Received", "Matched", "Lost", "Missed, no mbuf"},
		.columns = 5,
		.cut = 1 << 0,
		.dense = true};

	if (shares_update(r))
		return;
	for (unsigned i = 0; i < r->share_count; i++) {
		struct ringtap_interface info = {.size = sizeof(info)};
		const struct ringtap_counts *c = &r->shares[i].counts;
		uint64_t matched;

		if (ringtap_capture_interface(r->cap, i, &info) || sheet_row(&t))
			continue;
		matched = targets_iface(&r->targets, &r->cfg->capture, &info)->filter ||
					  info.sample > 1
				  ? c->captured + c->cut + counts_lost(c)
				  : c->seen;
		sheet_put(&t, 0, "%s:%s", info.app_name, info.name);
		sheet_put(&t, 1, "%" PRIu64, c->seen);
		sheet_put(&t, 2, "%" PRIu64, matched);
		sheet_put(&t, 3, "%" PRIu64, counts_lost(c));
		sheet_put(&t, 4, "%" PRIu64, info.nic_imissed + info.nic_nombuf);
	}
	sheet_end(&t, 0, stdout);
	putchar('\n');
	fflush(stdout);
}

int statistics_run(struct recorder *r)
{
	uint64_t start = now_ns(CLOCK_MONOTONIC);
	uint64_t next = start + NS_PER_S;
	uint64_t end = r->cfg->stop.duration_ns ? start + r->cfg->stop.duration_ns : UINT64_MAX;
	struct ringtap_run runs[64];
	int n = 0;

	for (;;) {
		uint64_t now = now_ns(CLOCK_MONOTONIC);
		uint64_t wake = next < end ? next : end;

		if (signals_count() || now >= end || ferror(stdout))
			break;
		if (now >= next) {
			print(r);
			next += NS_PER_S;
			continue;
		}
		n = ringtap_capture_next(r->cap, runs, 64, (int)((wake - now + 999999) / 1000000));
		if (n < 0)
			break;
		ringtap_capture_release(r->cap);
	}
	print(r);
	if (n < 0 && n != -EPIPE)
		return message_fail(STATUS_FAILED, "record: reading the ring: %s",
			ringtap_capture_error(r->cap));
	return STATUS_OK;
}
