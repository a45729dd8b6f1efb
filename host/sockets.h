/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sockets: the queues of a port that no driver receives. */
#ifndef RINGTAP_HOST_SOCKETS_H
#define RINGTAP_HOST_SOCKETS_H

#include "port.h"

/* Instead of a driver's name, followed by ",link=LINKTYPE,queues=N,framesz=…,blocksz=…,framecnt=…".
 */
#define PACKET_DEVICE "packet"
bool sockets_wanted(const struct port *p);
/* Opens and maps one for each queue; packets come from then on. 0 or -errno. */
int sockets_open(struct port *p);
void sockets_close(struct port *p);
/* Packets that the kernel had no room for, since the last call. */
uint64_t sockets_dropped(const struct port *p);

#endif
