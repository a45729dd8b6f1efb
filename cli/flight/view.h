/* SPDX-License-Identifier: BSD-3-Clause */
/* The document of an incident's page: docs/view.md. */
#ifndef RINGTAP_CLI_FLIGHT_VIEW_H
#define RINGTAP_CLI_FLIGHT_VIEW_H

#include "web/view.h"

struct incident;
struct diagnosis;

/* With snapshots first … last of the history (none if they are equal), and their diagnosis (NULL:
 * none). The caller writes it by web_page_write(), or decrefs it. */
json_t *incident_view(
	const struct incident *i, unsigned first, unsigned last, const struct diagnosis *d);

/* ---- its parts */

/* Bars of the lanes, by thread of the last snapshot (NULL: it has none), and their states. They
 * belong to the document; the caller frees the array. */
struct lane_bars {
	json_t **by_thread, *states;
	uint32_t count;
};

/* Lanes of the threads. */
void view_threads(struct view *v, const struct incident *i, unsigned first, unsigned last,
	struct lane_bars *bars);
/* Packets in the file, what ports lost, latencies, mempools, rings. */
void view_packets(struct view *v, const struct incident *i);
void view_ports(struct view *v, const struct incident *i, unsigned first, unsigned last);
void view_latency(struct view *v, const struct incident *i, unsigned first, unsigned last);
void view_pools(struct view *v, const struct incident *i, unsigned first, unsigned last);
void view_rings(struct view *v, const struct incident *i, unsigned first, unsigned last);
void view_statistic(struct view *v, const struct incident *i, unsigned first, unsigned last);

#endif
