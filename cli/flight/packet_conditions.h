/* SPDX-License-Identifier: BSD-3-Clause */
/* 'packet:' conditions: sessions beside the recording's, of the same ports. */
#ifndef RINGTAP_CLI_FLIGHT_PACKET_CONDITIONS_H
#define RINGTAP_CLI_FLIGHT_PACKET_CONDITIONS_H

struct flight;

/* After the recording's attaching; ready to start. 0 or -errno, printed. */
int packet_conditions_attach(struct flight *f);
int packet_conditions_start(struct flight *f);
/* Takes the packets that have matched. */
void packet_conditions_check(struct flight *f);
void packet_conditions_close(struct flight *f);

#endif
