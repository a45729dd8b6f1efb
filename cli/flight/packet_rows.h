/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets around an incident's event, for its page: the last ones before it, and the first ones
 * from it on. */
#ifndef RINGTAP_CLI_FLIGHT_PACKET_ROWS_H
#define RINGTAP_CLI_FLIGHT_PACKET_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "packet/blocks.h"
#include "packet/headers.h"
#include "web/view.h"

#define PACKET_ROWS_MAX   50000   /* on either side of the event */
#define PACKET_ROWS_BYTES 4000000 /* in the document: the page has less than 5 MB */

struct packet_rows;

/* NULL: no memory. */
struct packet_rows *packet_rows_new(uint64_t event_ns);
void packet_rows_free(struct packet_rows *r);
/* In the order of the file; packets count from 1 as in Wireshark. r may be NULL. */
void packet_rows_interface(struct packet_rows *r, const struct block *b, bool swapped);
void packet_rows_add(struct packet_rows *r, const struct block *b, const struct headers *h);
/* Adds the table. */
void packet_rows_view(const struct packet_rows *r, struct view *v);

#endif
