/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to Wireshark before it captures, in the sentences of extcap. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>

#include "target/interfaces.h"
#include "target/which_app.h"
#include "target/targets.h"
#include "packet/filter.h"
#include "base/util.h"
#include "target/capture_config.h"
#include "extcap.h"

/* Limit for each answer of an application: Wireshark's window waits for all of them, and one may be
 * stopped. */
#define ANSWER_MS 500

/* Numbers of the options, which their values refer to. */
enum {
	ARG_DIRECTION,
	ARG_QUEUE,
	ARG_SNAPLEN,
	ARG_BUFFER,
	ARG_TIMESTAMP,
	ARG_IDS,
	ARG_SAMPLE,
	ARG_TAGS,
	ARG_INNER,
	ARG_CUT,
	ARG_FIRST,
	ARG_HOST,
	ARG_SSH_PORT,
	ARG_USER,
	ARG_KEY,
	ARG_TARGET,
};

/* Braces and line ends separate sentences, and cannot be quoted. */
static bool speakable(const char *name)
{
	return !strpbrk(name, "{}\n\r");
}

static void print_app(const struct app_view *v, void *ctx)
{
	if (v->error || !speakable(v->name))
		return;
	for (size_t i = 0; i < v->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(v->list, i);

		if (speakable(p->name))
			printf("interface {value=" EXTCAP_SCHEME
			       "%s:%s}{display=DPDK port %s of %s}\n",
				v->name, p->name, p->name, v->name);
	}
	if (v->port_count)
		printf("interface {value=" EXTCAP_SCHEME "%s}{display=all DPDK ports of %s}\n",
			v->name, v->name);
}

/* Calls each() for every application. */
static int each_app(void (*each)(const struct app_view *v, void *ctx), void *ctx)
{
	struct ringtap_apps *apps;
	uint64_t foreign_ns = 0;
	int ret;

	ret = ringtap_apps_find(&apps);
	if (ret)
		return message_fail(
			STATUS_FAILED, "extcap: looking for applications: %s", strerror(-ret));
	for (size_t i = 0; i < ringtap_apps_count(apps); i++) {
		struct app_view v;

		app_view_get(&v, apps, i, ANSWER_MS, &foreign_ns);
		each(&v, ctx);
		app_view_free(&v);
	}
	ringtap_apps_free(apps);
	return STATUS_OK;
}

int print_interfaces(void)
{
	printf("extcap {version=" RINGTAP_VERSION "}{display=ringtap}\n");
	printf("interface {value=" EXTCAP_SSH "}{display=DPDK ports of another host, by SSH}\n");
	return each_app(print_app, NULL);
}

struct search {
	const char *interface; /* APP:PORT, or APP */
	uint16_t linktype;     /* its first port's; 0: there is none */
};

static void find_linktype(const struct app_view *v, void *ctx)
{
	struct search *s = ctx;
	const char *const names[] = {v->name};
	const char *port;
	int app;

	target_split(s->interface, names, 1, &app, &port);
	for (size_t i = 0; (app == 0 || !strcmp(s->interface, v->name)) && i < v->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(v->list, i);

		if (app == 0 && port && !target_port_matches(p->name, p->device, p->port_id, port))
			continue;
		s->linktype = s->linktype ? s->linktype : p->linktype;
	}
}

bool is_remote(const char *interface)
{
	return interface && !strcmp(interface, EXTCAP_SSH);
}

uint16_t linktype_of(const char *interface)
{
	struct search s = {.interface = interface + strlen(EXTCAP_SCHEME)};

	if (is_remote(interface)) /* unknown until its file comes */
		return RINGTAP_LINKTYPE_ETHERNET;
	return !each_app(find_linktype, &s) && s.linktype ? s.linktype : RINGTAP_LINKTYPE_ETHERNET;
}

int print_dlts(const char *interface)
{
	int dlt = filter_dlt(linktype_of(interface));
	const char *name = pcap_datalink_val_to_name(dlt);
	const char *text = pcap_datalink_val_to_description(dlt);

	printf("dlt {number=%d}{name=%s}{display=%s}\n", dlt, name ? name : "", text ? text : "");
	return STATUS_OK;
}

struct queues {
	const char *interface;
	uint32_t count;
};

static void count_queues(const struct app_view *v, void *ctx)
{
	struct queues *q = ctx;
	const char *const names[] = {v->name};
	const char *port;
	int app;

	target_split(q->interface, names, 1, &app, &port);
	for (size_t i = 0; (app == 0 || !strcmp(q->interface, v->name)) && i < v->port_count; i++) {
		const struct ringtap_port_info *p = ringtap_list_port(v->list, i);

		if (app == 0 && port && !target_port_matches(p->name, p->device, p->port_id, port))
			continue;
		q->count = p->rx_queues > q->count ? p->rx_queues : q->count;
		q->count = p->tx_queues > q->count ? p->tx_queues : q->count;
	}
}

static int print_queues(const char *interface)
{
	struct queues q = {.interface = interface + strlen(EXTCAP_SCHEME)};
	int ret = each_app(count_queues, &q);

	printf("value {arg=%d}{value=all}{display=all}{default=true}\n", ARG_QUEUE);
	for (uint32_t i = 0; i < q.count && q.count > 1; i++)
		printf("value {arg=%d}{value=%u}{display=%u}{default=false}\n", ARG_QUEUE, i, i);
	return ret;
}

static void print_remote(void)
{
	printf("arg {number=%d}{call=--host}{display=Host}{type=string}{required=true}{tooltip="
	       "Where ringtap and the application run; ssh must need no password}\n"
	       "arg {number=%d}{call=--ssh-port}{display=SSH port}{type=string}"
	       "{validation=^[0-9]*$}{placeholder=22}{tooltip=Empty: as ssh is configured}\n"
	       "arg {number=%d}{call=--user}{display=User}{type=string}{tooltip=Empty: as ssh is "
	       "configured}\n"
	       "arg {number=%d}{call=--key}{display=Private key}{type=fileselect}{mustexist=true}"
	       "{tooltip=Empty: as ssh is configured}\n"
	       "arg {number=%d}{call=--target}{display=Application or port}{type=string}"
	       "{placeholder=APP:PORT}{tooltip=APP or APP:PORT. Empty: all ports of the only "
	       "application}\n",
		ARG_HOST, ARG_SSH_PORT, ARG_USER, ARG_KEY, ARG_TARGET);
}

static int print_queue(const char *interface)
{
	if (is_remote(interface)) {
		printf("arg {number=%d}{call=--queue}{display=Queue}{type=string}"
		       "{validation=^([0-9]+|all)$}{default=all}{tooltip=Only this queue}\n",
			ARG_QUEUE);
		return STATUS_OK;
	}
	printf("arg {number=%d}{call=--queue}{display=Queue}{type=selector}{reload=true}"
	       "{placeholder=Reload from the application}{tooltip=Only this queue}\n",
		ARG_QUEUE);
	return print_queues(interface);
}

int print_config(const struct extcap *e)
{
	if (e->reload && !strcmp(e->reload, "queue"))
		return print_queues(e->interface);
	if (e->reload)
		return STATUS_OK;
	if (is_remote(e->interface))
		print_remote();
	printf("arg "
	       "{number=%d}{call=--direction}{display=Direction}{type=selector}{tooltip=Received "
	       "packets, sent packets, or both}\n"
	       "value {arg=%d}{value=both}{display=received and sent}{default=true}\n"
	       "value {arg=%d}{value=rx}{display=received}{default=false}\n"
	       "value {arg=%d}{value=tx}{display=sent}{default=false}\n",
		ARG_DIRECTION, ARG_DIRECTION, ARG_DIRECTION, ARG_DIRECTION);
	if (print_queue(e->interface))
		return STATUS_FAILED;
	printf("arg {number=%d}{call=--snapshot-length}{display=Bytes of each "
	       "packet}{type=unsigned}{range=0,%d}{default=0}{tooltip=Largest number of bytes; 0 "
	       "means all}\n",
		ARG_SNAPLEN, RINGTAP_SNAPLEN_MAX);
	printf("arg {number=%d}{call=--buffer}{display=Buffer "
	       "size}{type=string}{validation=^[0-9]+[KMGkmg]$}{placeholder=256M}{tooltip=Bytes "
	       "for the packets of the application, such as 64M. A larger buffer "
	       "bridges longer pauses of Wireshark; empty: the default}\n",
		ARG_BUFFER);
	printf("arg {number=%d}{call=--timestamp}{display=Time stamps}{type=selector}{tooltip=Of "
	       "the burst in which a packet came, by the CPU, or of the NIC if it gives any}\n"
	       "value {arg=%d}{value=tsc}{display=CPU}{default=true}\n"
	       "value {arg=%d}{value=nic}{display=NIC}{default=false}\n",
		ARG_TIMESTAMP, ARG_TIMESTAMP, ARG_TIMESTAMP);
	printf("arg {number=%d}{call=--ids}{display=Packet ids}{type=boolflag}{tooltip="
	       "What is sent of a received packet has the same frame.packet_id}\n",
		ARG_IDS);
	printf("arg {number=%d}{call=--sample}{display=One of N packets}{type=unsigned}"
	       "{range=1,%u}{default=1}{tooltip=A power of two. Packets are chosen at random, "
	       "before the filter}\n",
		ARG_SAMPLE, RT_SAMPLE_MAX);
	printf("arg {number=%d}{call=--tags}{display=VLAN tags}{type=selector}{tooltip=What the "
	       "capture filter means for tagged packets}\n"
	       "value {arg=%d}{value=any}{display=filters look behind them}{default=true}\n"
	       "value {arg=%d}{value=as-is}{display=filters mean the frame as it is}"
	       "{default=false}\n",
		ARG_TAGS, ARG_TAGS, ARG_TAGS);
	printf("arg {number=%d}{call=--inner}{display=Below tunnels}{type=boolflag}{tooltip="
	       "The capture filter also matches packets in VXLAN, Geneve, GRE, GTP-U, MPLS and "
	       "IP in IP}\n",
		ARG_INNER);
	printf("arg {number=%d}{call=--cut}{display=Only headers}{type=string}{placeholder=headers}"
	       "{tooltip=headers, l4+64 for 64 bytes behind them, or a number of bytes; empty: "
	       "packets as they are}\n",
		ARG_CUT);
	printf("arg {number=%d}{call=--first}{display=Only the first of each flow}{type=string}"
	       "{placeholder=32k/flow}{tooltip=32k/flow or 100p/flow; empty: all}\n",
		ARG_FIRST);
	return STATUS_OK;
}
