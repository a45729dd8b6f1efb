/* SPDX-License-Identifier: BSD-3-Clause */
/* Which received packets an application holds, of a mempool with a use that grows. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fates/held.h"
#include "packets.h"

#define BUFFER_BYTES (4u << 20) /* records of packets that were not offered: they are not read */
#define SNAPLEN      64         /* has all headers that are shown */

struct doctor_packets {
	struct held *held;
	char pool[RINGTAP_NAME_LEN];
	bool over; /* the application or its capture */
	bool read; /* held has what is held now */
};

struct doctor_packets *doctor_packets_begin(const char *app, const char *pool)
{
	struct doctor_packets *p = calloc(1, sizeof(*p));
	char text[RINGTAP_NAME_LEN];
	struct held *h = held_new("doctor");

	if (!p || !h) {
		message_print("doctor: not enough memory to follow packets");
		held_free(h);
		free(p);
		return NULL;
	}
	p->held = h;
	memcpy(p->pool, pool, sizeof(p->pool));
	h->pool = p->pool;
	h->view.s.words = (struct one_app_words){.list = {app}, .count = 1};
	h->view.s.snaplen = SNAPLEN;
	h->view.s.buffer_size = BUFFER_BYTES;
	message_print("doctor: mempool %s of %s grows: following received packets for %d s "
		      "(--no-packets does without)",
		printable(text, sizeof(text), pool), app, (int)(DOCTOR_PACKETS_NS / NS_PER_S));
	if (fates_begin(&h->view.s) == STATUS_OK)
		return p;
	doctor_packets_free(p);
	return NULL;
}

void doctor_packets_free(struct doctor_packets *p)
{
	if (!p)
		return;
	held_free(p->held);
	free(p);
}

void doctor_packets_step(struct doctor_packets *p)
{
	if (!p->over)
		p->over = fates_take(&p->held->view.s, 0) != 0;
}

void doctor_packets_end(struct doctor_packets *p)
{
	struct fates_session *s = &p->held->view.s;

	p->read = !fates_end(s) && !fates_read(s) && !held_read(p->held);
}

/* The time in which the packets older than the bound were received. */
static double seconds_of(const struct held *h)
{
	const struct fates_session *s = &h->view.s;
	uint64_t end = h->read_ns - h->older_ns;

	if (end > s->end_ns)
		end = s->end_ns;
	return end > s->start_ns ? (double)(end - s->start_ns) / NS_PER_S : 0;
}

/* "all", or how many. */
static const char *of(char buf[FORMAT_LEN], uint64_t part, uint64_t whole)
{
	return part == whole ? "all" : format_count(buf, part);
}

static void place_evidence(struct verdict *v, const struct held *h)
{
	const struct held_place *g = held_largest(h);
	const struct fates_session *s = &h->view.s;
	char name[RINGTAP_NAME_LEN], text[RINGTAP_NAME_LEN], n[FORMAT_LEN];
	const struct ringtap_fate_queue *q;

	if (!g || g->queue >= s->fates->queue_count)
		return;
	q = ringtap_fates_queue(s->fates, g->queue);
	verdict_add_evidence(v, "%s of these packets were received at %s queue %u",
		of(n, g->count.older, h->all.older),
		printable(text, sizeof(text), fates_port(s, q->interface, name)), q->queue);
}

static void group_evidence(struct verdict *v, const struct held *h)
{
	char text[SAMPLE_TEXT], n[FORMAT_LEN];
	const struct packet_group *top;

	if (groups_top(&h->groups, &top, 1))
		verdict_add_evidence(v, "%s are %s, such as %s", of(n, top->packets, h->all.older),
			top->name, sample_text(&top->example, text));
}

/* Whether free mbufs of the pool are known. */
static bool is_walked(const struct held *h)
{
	const struct ringtap_fates *f = h->view.s.fates;

	for (uint32_t i = 0; i < f->pool_count; i++)
		if (!strcmp(ringtap_fates_pool(f, i)->name, h->pool))
			return ringtap_fates_pool(f, i)->walked;
	return true; /* no packet of it was received */
}

void doctor_packets_evidence(
	const void *packets, struct verdict *v, const char *pool, double growth)
{
	const struct doctor_packets *p = packets;
	const struct held *h = p->held;
	double seconds = p->read && !strcmp(pool, p->pool) ? seconds_of(h) : 0;
	double a_second = seconds > 0 ? (double)h->all.older / seconds : 0;
	uint64_t freed = seconds > 0 ? held_in_descriptors(h) : 0;
	char n[FORMAT_LEN];

	if (!(seconds > 0))
		return;
	verdict_add_evidence(v,
		"of the packets that it received in %.1f s, it holds %s of this mempool for more "
		"than a second: about %.3g a second",
		seconds, format_count(n, h->all.older), a_second);
	if (h->all.older) {
		place_evidence(v, h);
		group_evidence(v, h);
	}
	if (!is_walked(h))
		verdict_add_evidence(v,
			"freed packets are among them: free mbufs of this mempool cannot be found");
	/* The use of a pool has descriptors in it, always as many of them. */
	if (freed && a_second > 2 * growth)
		verdict_add_evidence(v,
			"up to %s of them may have been freed: their mbufs may lie in RX "
			"descriptors",
			format_count(n, freed));
	if (a_second < growth / 2)
		verdict_add_evidence(v,
			"most of the growth is not received packets: the application allocates "
			"these mbufs itself, or copies packets into them");
}
