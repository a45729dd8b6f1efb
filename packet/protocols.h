/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of protocols, everywhere. The archive's show.py has them too, and a test compares them. */
#ifndef RINGTAP_PACKET_PROTOCOLS_H
#define RINGTAP_PACKET_PROTOCOLS_H

/* P(number of the IP protocol, name) */
#define IP_PROTOCOLS(P) \
	P(1, "ICMP")    \
	P(2, "IGMP")    \
	P(4, "IPv4")    \
	P(6, "TCP")     \
	P(17, "UDP")    \
	P(41, "IPv6")   \
	P(47, "GRE")    \
	P(50, "ESP")    \
	P(51, "AH")     \
	P(58, "ICMPv6") \
	P(89, "OSPF")   \
	P(103, "PIM")   \
	P(112, "VRRP")  \
	P(132, "SCTP")

/* P(EtherType, name) */
#define ETHERTYPES(P)      \
	P(0x0800, "IPv4")  \
	P(0x0806, "ARP")   \
	P(0x8100, "VLAN")  \
	P(0x86dd, "IPv6")  \
	P(0x8809, "LACP")  \
	P(0x8847, "MPLS")  \
	P(0x8848, "MPLS")  \
	P(0x8863, "PPPoE") \
	P(0x8864, "PPPoE") \
	P(0x88a8, "VLAN")  \
	P(0x88cc, "LLDP")  \
	P(0x88f7, "PTP")

#endif
