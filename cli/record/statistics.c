/* SPDX-License-Identifier: BSD-3-Clause */
/* record -S: counts of each interface once a second, no packets. */
#include <errno.h>
#include <inttypes.h>

#include "record.h"
#include "base/util.h"

#define NAME_WIDTH 24

static void print(struct recorder *r)
{
	if (shares_update(r))
		return;
	printf("%-24s %13s %13s %13s %13s\n", "Interface", "Received", "Matched", "Dropped",
		"NIC dropped");
	for (unsigned i = 0; i < r->share_count; i++) {
		struct ringtap_interface info = {.size = sizeof(info)};
		const struct ringtap_counts *c = &r->shares[i].counts;
		char name[2 * RINGTAP_NAME_LEN + 2], shown[2 * RINGTAP_NAME_LEN + 2];

		if (ringtap_capture_interface(r->cap, i, &info))
			continue;
		snprintf(name, sizeof(name), "%s:%s", info.app_name, info.name);
		printf("%s %13" PRIu64 " %13" PRIu64 " %13" PRIu64 " %13" PRIu64 "\n",
			text_cell(shown, sizeof(shown), name, NAME_WIDTH), c->seen,
			targets_iface(&r->targets, &r->cfg->capture, &info)->filter
				? c->captured + counts_lost(c)
				: c->seen,
			counts_lost(c), info.nic_imissed + info.nic_nombuf);
	}
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
	if (n < 0 && n != -EPIPE) {
		message_print("record: reading the ring: %s", ringtap_capture_error(r->cap));
		return STATUS_FAILED;
	}
	return STATUS_OK;
}
