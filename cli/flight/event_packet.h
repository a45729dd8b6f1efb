/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet that is an event, to be found again in another capture of the same application. */
#ifndef RINGTAP_CLI_FLIGHT_EVENT_PACKET_H
#define RINGTAP_CLI_FLIGHT_EVENT_PACKET_H

#include <stdbool.h>

#include "ringtap/reader.h"
#include "trigger.h"

/* Makes p, of capture cap, the packet of the event, and its port the event's place. */
void event_set_packet(
	struct event *e, const struct ringtap_capture *cap, const struct ringtap_packet *p);
/* Whether p, of capture cap, is the packet of the event. */
bool event_is_packet(
	const struct event *e, const struct ringtap_capture *cap, const struct ringtap_packet *p);

#endif
