/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "measure/kernel.h"
#include "view.h"

static const char *address(const struct flow_key *k, const uint8_t *a, char buf[ADDRESS_TEXT])
{
	return k->flags ? flow_address(k, a, buf) : "unreadable";
}

static void port_text(const struct flow_key *k, char buf[LEDGER_TEXT])
{
	char name[16];

	flow_protocol(k, name);
	if (!k->flags)
		snprintf(buf, LEDGER_TEXT, "unreadable");
	else if (k->flags & HAS_PORTS)
		snprintf(buf, LEDGER_TEXT, "%s %u", name, k->src_port);
	else
		snprintf(buf, LEDGER_TEXT, "%s", name);
}

static void queue_text(
	const struct flow_key *k, const struct fates_session *s, char buf[LEDGER_TEXT])
{
	const struct ledger_place p = {k->port + 1u, k->src_port};
	char text[LEDGER_TEXT];

	snprintf(buf, LEDGER_TEXT, "%.*s, %s", LEDGER_TEXT - 16, ledger_place_text(&p, s, text),
		k->protocol == RINGTAP_TX ? "sent" : "received");
}

bool ledger_thread(const struct ledger *t, const struct flow_key *k, struct ledger_thread *thread)
{
	memcpy(thread, k->src, sizeof(*thread));
	return t->view == LEDGER_THREAD;
}

static void put_thread(const struct ledger *t, const struct flow_key *k,
	const struct fates_session *s, char buf[LEDGER_TEXT])
{
	struct ledger_thread thread;
	char text[THREAD_NAME_LEN], name[16];

	(void)ledger_thread(t, k, &thread);
	kernel_thread_name(name, s ? (pid_t)s->info.host_pid : 0, thread.tid);
	if (!thread.tid && thread.lcore == RINGTAP_NO_INDEX)
		strcpy(name, "unknown");
	snprintf(buf, LEDGER_TEXT, "%s, %s", thread_text(text, thread.lcore, name, thread.tid),
		k->protocol == RINGTAP_TX ? "sent" : "received");
}

bool ledger_vni(const struct ledger *t, const struct flow_key *k, uint32_t *vni)
{
	*vni = (uint32_t)k->zero[0] << 16 | (uint32_t)k->zero[1] << 8 | k->zero[2];
	if (t->view == LEDGER_VNI)
		return *vni != UINT32_MAX >> 8;
	return t->view == LEDGER_INNER && *vni;
}

static void tunnel_text(const struct ledger *t, const struct flow_key *k, char buf[LEDGER_TEXT])
{
	uint32_t vni;
	size_t n;

	if (t->view == LEDGER_VNI)
		buf[0] = '\0';
	else
		flow_text(k, buf);
	n = strlen(buf);
	if (ledger_vni(t, k, &vni))
		snprintf(buf + n, LEDGER_TEXT - n, "%sVNI %u", n ? ", " : "", vni);
	else if (!n)
		snprintf(buf, LEDGER_TEXT, "no tunnel");
}

char *ledger_place_text(
	const struct ledger_place *p, const struct fates_session *s, char buf[LEDGER_TEXT])
{
	char name[RINGTAP_NAME_LEN];

	buf[0] = '\0';
	if (p->interface)
		snprintf(buf, LEDGER_TEXT, "%s, queue %u", fates_port(s, p->interface - 1, name),
			p->queue);
	return buf;
}

char *ledger_text(const struct ledger *t, const struct flow_key *k, const struct fates_session *s,
	char buf[LEDGER_TEXT])
{
	const struct headers h = {
		.flags = k->flags, .version = k->version, .protocol = k->protocol, .type = k->type};
	char src[ADDRESS_TEXT], dst[ADDRESS_TEXT];

	switch (t->view) {
	case LEDGER_5_TUPLE: flow_text(k, buf); break;
	case LEDGER_HOST: snprintf(buf, LEDGER_TEXT, "%s", address(k, k->src, src)); break;
	case LEDGER_PAIR:
		snprintf(buf, LEDGER_TEXT, "%s <> %s", address(k, k->src, src),
			address(k, k->dst, dst));
		break;
	case LEDGER_MAC:
		snprintf(buf, LEDGER_TEXT, "%s > %s", address(k, k->src, src),
			address(k, k->dst, dst));
		break;
	case LEDGER_PORT: port_text(k, buf); break;
	case LEDGER_PROTOCOL: headers_protocol(&h, buf); break;
	case LEDGER_VLAN:
		if (k->vlan == FLOW_NO_VLAN)
			strcpy(buf, "no VLAN");
		else
			snprintf(buf, LEDGER_TEXT, "VLAN %u", k->vlan);
		break;
	case LEDGER_DSCP:
		if (k->flags)
			snprintf(buf, LEDGER_TEXT, "DSCP %u", k->protocol);
		else
			strcpy(buf, "not IP");
		break;
	case LEDGER_QUEUE: queue_text(k, s, buf); break;
	case LEDGER_THREAD: put_thread(t, k, s, buf); break;
	case LEDGER_VNI:
	case LEDGER_INNER: tunnel_text(t, k, buf); break;
	}
	return buf;
}

bool ledger_became(const struct ledger *t, const struct ledger_flow *f, char buf[LEDGER_TEXT])
{
	if (!t->ids || !ledger_latency(f)->became.flags)
		return false;
	ledger_text(t, &ledger_latency(f)->became, NULL, buf);
	return true;
}
