/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about a part beside its rows, as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "archive.h"
#include "base/json.h"

static void put_count(json_t *j, const char *key, uint64_t n)
{
	if (n != NO_COUNT)
		json_object_set_new(j, key, json_integer((json_int_t)n));
}

static void put_text(json_t *j, const char *key, const char *text)
{
	if (text)
		json_object_set_new(j, key, json_text(text));
}

/* "port 0 of DPDK application NAME, DEVICE": reader/capture/pcapng.c writes it. */
static void put_application(json_t *j, const char *description)
{
	char name[WALK_TEXT];
	unsigned port;
	int at = 0;

	if (!description || sscanf(description, "port %u of DPDK application %n", &port, &at) < 1 ||
		!at)
		return;
	snprintf(name, sizeof(name), "%s", description + at);
	name[strcspn(name, ",")] = '\0';
	json_object_set_new(j, "app", json_text(name));
	json_object_set_new(j, "port", json_integer(port));
}

static json_t *statistics(const struct statistics *s)
{
	json_t *j = json_object();

	put_count(j, "time_ns", s->time_ns);
	put_count(j, "start_ns", s->start_ns);
	put_count(j, "end_ns", s->end_ns);
	put_count(j, "received", s->received);
	put_count(j, "dropped", s->dropped);
	put_count(j, "accepted", s->accepted);
	put_count(j, "os_dropped", s->os_dropped);
	put_count(j, "delivered", s->delivered);
	return j;
}

static json_t *interface(uint32_t index, const struct iface *i)
{
	json_t *j = json_object();
	char name[32];

	snprintf(name, sizeof(name), "interface %u", index);
	json_object_set_new(j, "index", json_integer(index));
	put_text(j, "name", i->name ? i->name : name);
	put_text(j, "description", i->description);
	put_text(j, "filter", i->filter);
	put_text(j, "hardware", i->hardware);
	put_text(j, "os", i->os);
	put_application(j, i->description);
	json_object_set_new(j, "linktype", json_integer(i->of.linktype));
	json_object_set_new(j, "snaplen", json_integer(i->of.snaplen));
	json_object_set_new(j, "tsresol", json_integer(i->of.resolution));
	json_object_set_new(j, "tsoffset", json_integer(i->of.offset_s));
	put_count(j, "speed", i->speed ? i->speed : NO_COUNT);
	if (i->clock.timestamp[0])
		put_text(j, "timestamp", i->clock.timestamp);
	put_count(j, "tsc_hz", i->clock.tsc_hz ? i->clock.tsc_hz : NO_COUNT);
	put_count(j, "sample", i->sample > 1 ? i->sample : NO_COUNT);
	put_text(j, "first", i->first);
	json_object_set_new(j, "packets", json_integer((json_int_t)i->packets));
	if (i->last.time_ns != NO_COUNT)
		json_object_set_new(j, "statistics", statistics(&i->last));
	return j;
}

static json_t *interfaces(const struct walk *w)
{
	json_t *j = json_array();

	for (uint32_t i = 0; i < w->count; i++)
		json_array_append_new(j, interface(i, &w->ifs[i]));
	return j;
}

static json_t *section(const struct walk *w)
{
	json_t *j = json_object();

	put_text(j, "application", w->application);
	put_text(j, "hardware", w->hardware);
	put_text(j, "os", w->os);
	put_text(j, "comment", w->comment);
	return j;
}

char *rt_archive_part_info(const struct rt_archive *a)
{
	const struct part *p = &a->part;
	json_t *j = json_object();
	char *text;

	json_object_set_new(j, "packets", json_integer((json_int_t)p->packets));
	json_object_set_new(j, "first_ns", p->packets ? json_integer(p->first_ns) : json_null());
	json_object_set_new(j, "last_ns", p->packets ? json_integer(p->last_ns) : json_null());
	json_object_set_new(j, "hour", p->packets ? json_integer(p->hour) : json_null());
	json_object_set_new(j, "late", json_boolean(p->late));
	json_object_set_new(j, "interfaces", interfaces(&a->walk));
	json_object_set_new(j, "losses", losses_json(&p->losses));
	json_object_set_new(j, "losses_beyond", json_integer((json_int_t)p->losses.beyond));
	json_object_set_new(j, "clock", clock_json(&p->clock));
	json_object_set_new(j, "section", section(&a->walk));
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return text;
}
