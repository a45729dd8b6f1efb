/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/layers.h"
#include "view.h"

static void put_mac(FILE *f, const char *which, const uint8_t *mac)
{
	char text[MAC_TEXT];

	fprintf(f, "ether %s %s", which, mac_text(mac, text));
}

static void put_address(
	FILE *f, const struct flow_key *k, const char *which, const uint8_t *address)
{
	char text[ADDRESS_TEXT];

	if (k->flags & HAS_IP)
		fprintf(f, "%shost %s", which, address_text(k->version, address, text));
	else
		put_mac(f, *which ? which : "host", address);
}

static bool has_port_names(const struct flow_key *k)
{
	return k->protocol == IPPROTO_TCP || k->protocol == IPPROTO_UDP ||
	       k->protocol == IPPROTO_SCTP;
}

/* Values without a name in libpcap's language go by their numbers. */
static void put_protocol(FILE *f, const struct flow_key *k)
{
	if (!(k->flags & HAS_IP)) {
		fprintf(f, "ether proto 0x%04x", k->type);
		return;
	}
	if (has_port_names(k))
		fprintf(f, "%s",
			k->protocol == IPPROTO_TCP   ? "tcp"
			: k->protocol == IPPROTO_UDP ? "udp"
						     : "sctp");
	else
		fprintf(f, "%s %u",
			k->version == 6   ? "ip6 proto"
			: k->version == 4 ? "ip proto"
					  : "proto",
			k->protocol);
}

/* Later fragments have no ports. */
static void put_later(FILE *f, const struct flow_key *k)
{
	if (!layer_has_ports(k->protocol) || k->flags & HAS_PORTS)
		return;
	fputs(k->version == 4     ? " and ip[6:2] & 0x1fff != 0"
		: k->version == 6 ? " and ip6[6] = 44"
				  : " and (ip[6:2] & 0x1fff != 0 or ip6[6] = 44)",
		f);
}

static void put_5_tuple(FILE *f, const struct flow_key *k)
{
	if (!(k->flags & HAS_IP)) {
		put_mac(f, "src", k->src);
		fputs(" and ", f);
		put_mac(f, "dst", k->dst);
		if (k->flags & HAS_TYPE && k->type >= TYPE_MIN)
			fprintf(f, " and ether proto 0x%04x", k->type);
		return;
	}
	put_protocol(f, k);
	fputs(" and ", f);
	put_address(f, k, "src ", k->src);
	fputs(" and ", f);
	put_address(f, k, "dst ", k->dst);
	if (k->flags & HAS_PORTS && has_port_names(k))
		fprintf(f, " and src port %u and dst port %u", k->src_port, k->dst_port);
	else
		put_later(f, k);
}

/* Also behind a second tag: libpcap reads on behind each "vlan". "and" and "or" have one rank. */
static void put_flow(FILE *f, const struct flow_key *k)
{
	if (k->vlan == FLOW_NO_VLAN) {
		put_5_tuple(f, k);
		return;
	}
	fprintf(f, "vlan %u and ((", k->vlan);
	put_5_tuple(f, k);
	fputs(") or (vlan and ", f);
	put_5_tuple(f, k);
	fputs("))", f);
}

/* pair: both hosts. Packets with other addresses have entries by these. */
static void put_hosts(FILE *f, const struct flow_key *k, bool pair)
{
	put_address(f, k, "", k->src);
	if (pair) {
		fputs(" and ", f);
		put_address(f, k, "", k->dst);
	}
	if (!(k->flags & HAS_IP))
		fputs(" and not ip and not ip6 and not arp", f);
}

static void put_port(FILE *f, const struct flow_key *k)
{
	put_protocol(f, k);
	if (k->flags & HAS_PORTS && has_port_names(k))
		fprintf(f, " and port %u", k->src_port);
	else if (k->flags & HAS_IP)
		put_later(f, k);
}

static void put_dscp(FILE *f, const struct flow_key *k)
{
	if (k->flags)
		fprintf(f, "ip[1] >> 2 = %u or ip6[0:2] >> 6 & 63 = %u", k->protocol, k->protocol);
	else
		fputs("not ip and not ip6", f);
}

static void put_entry(FILE *f, enum ledger_view view, const struct flow_key *k)
{
	switch (view) {
	case LEDGER_5_TUPLE: put_flow(f, k); break;
	case LEDGER_HOST: put_hosts(f, k, false); break;
	case LEDGER_PAIR: put_hosts(f, k, true); break;
	case LEDGER_PORT: put_port(f, k); break;
	case LEDGER_PROTOCOL:
		if (k->flags & HAS_IP)
			fputs(k->version == 6 ? "ip6 and " : "ip and ", f);
		put_protocol(f, k);
		break;
	case LEDGER_MAC:
		put_mac(f, "src", k->src);
		fputs(" and ", f);
		put_mac(f, "dst", k->dst);
		break;
	case LEDGER_DSCP: put_dscp(f, k); break;
	case LEDGER_VLAN:
		if (k->vlan == FLOW_NO_VLAN)
			fputs("not vlan", f);
		else
			fprintf(f, "vlan %u", k->vlan);
		break;
	case LEDGER_QUEUE:
	case LEDGER_THREAD:
	case LEDGER_VNI:
	case LEDGER_INNER: break;
	}
}

static bool is_readable(enum ledger_view view, const struct flow_key *k)
{
	switch (view) {
	case LEDGER_5_TUPLE:
	case LEDGER_HOST:
	case LEDGER_PAIR:
	case LEDGER_MAC: return k->flags;
	case LEDGER_PORT:
	case LEDGER_PROTOCOL: return k->flags & HAS_IP || k->type >= TYPE_MIN;
	default: return true;
	}
}

char *ledger_expression(const struct ledger *t, const struct flow_key *k)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = is_readable(t->view, k) ? open_memstream(&text, &len) : NULL;

	if (!f)
		return NULL;
	put_entry(f, t->view, k);
	if (fclose(f) || !len) {
		free(text);
		text = NULL;
	}
	return text;
}
