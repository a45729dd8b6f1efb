/* SPDX-License-Identifier: BSD-3-Clause */
/* Causes of an incident: conditions on two snapshots, and what happens to the application. */
#ifndef RINGTAP_CLI_FLIGHT_TRIGGER_H
#define RINGTAP_CLI_FLIGHT_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "judge/examination.h"
#include "measure/rates.h"
#include "packet/inner.h"
#include "recorder/request.h"

/* In the order of TRIGGER_NAMES. */
enum trigger_kind {
	TRIGGER_MISSED,
	TRIGGER_NO_MBUF,
	TRIGGER_REFUSED,
	TRIGGER_ERRORS,
	TRIGGER_LATENCY,
	TRIGGER_P50,
	TRIGGER_P90,
	TRIGGER_P99,
	TRIGGER_P999,
	TRIGGER_GAP,
	TRIGGER_IDLE_GAP,
	TRIGGER_BURST,
	TRIGGER_POOL,
	TRIGGER_RING,
	TRIGGER_XSTAT,
	TRIGGER_DEVICE,
	TRIGGER_DOCTOR, /* this and those below do not compare two snapshots */
	TRIGGER_PACKET,
	TRIGGER_USDT,
	TRIGGER_EXIT,
	TRIGGER_COMMAND, /* SIGUSR1, and ringtap flight trigger; always on */
};
#define TRIGGER_NAMES                                                                                \
	"missed|no-mbuf|refused|errors|latency|p50|p90|p99|p999|gap|idle-gap|burst|pool|ring|xstat|" \
	"device|doctor|packet|usdt|exit"

#define TRIGGER_OBJECT (2 * RINGTAP_NAME_LEN)

struct trigger {
	const char *text; /* as given; it lives as long as argv */
	const char *name; /* name of its incidents */
	enum trigger_kind kind;
	double threshold; /* packets, ns, or objects; percent or packets/s if so */
	bool rate, percent;
	/* Name of the ring ("": any), of the xstat, or of a device and its statistic. */
	char object[TRIGGER_OBJECT];
	uint64_t over_ns;       /* the interval that it is compared over; 0: between two readings */
	int verdict;            /* enum verdict_id of TRIGGER_DOCTOR, -1: any fault */
	struct filter filter;   /* TRIGGER_PACKET: for Ethernet */
	const char *expression; /* its text */
	bool inner;             /* it also matches below tunnels */
	char provider[64], event[64]; /* for TRIGGER_USDT */
	uint64_t before_ns, after_ns, cooldown_ns;
};

/* A packet, to find it again in another capture of the same application. */
struct sighting {
	uint64_t hash; /* hash of its captured bytes */
	uint32_t caplen, length, queue;
	uint8_t direction; /* 0: there is no packet */
};

/* That a condition was met. */
struct event {
	uint64_t from_ns, to_ns; /* since the epoch: some time between them */
	double value;
	char where[96];         /* port, thread, pool, ring, device, verdict; "": the application */
	struct sighting packet; /* for TRIGGER_PACKET; its port is where */
	char comment[REQUEST_COMMENT_MAX]; /* for TRIGGER_COMMAND; "": none */
};

static inline bool trigger_is_time(enum trigger_kind k)
{
	return k >= TRIGGER_LATENCY && k <= TRIGGER_IDLE_GAP;
}

/* Parses "gap > 50us" and the like; text lives as long as t. -EINVAL after a message. */
int trigger_parse(struct trigger *t, const char *text);
/* Makes t->filter, where it is a TRIGGER_PACKET. -EINVAL after a message. The caller frees it. */
int trigger_compile(struct trigger *t, bool inner, enum ringtap_tags tags);
/* The collectors that it needs. */
unsigned trigger_collectors(const struct trigger *t);
/* Whether its condition was met between two snapshots; e becomes the first, or worst, case. Not for
 * TRIGGER_DOCTOR and those after it. */
bool trigger_check(const struct trigger *t, const struct span *s, struct event *e);
/* False: whether it was met is unknown, as no driver was read between the two. */
bool trigger_known(const struct trigger *t, const struct span *s);
/* The same of a diagnosis. */
bool trigger_check_doctor(const struct trigger *t, const struct diagnosis *d, struct event *e);
/* True: nothing in the application can meet it yet: it has no mempool whose level is known. */
bool trigger_blind(const struct trigger *t, const struct ringtap_snapshot *s);
/* Whether it covers the ring, xstat or device and statistic of this name. */
bool trigger_names(const struct trigger *t, const char *name);
/* "dma0 submitted": what conditions call a statistic of a device, or of any part of it. */
char *trigger_device(const struct ringtap_device_stat *d, char buf[TRIGGER_OBJECT]);
/* "dma0, channel 2". Printable. */
#define TRIGGER_PLACE (RINGTAP_NAME_LEN + 24)
char *trigger_place(const struct ringtap_device_stat *d, char buf[TRIGGER_PLACE]);
/* An xstat or a statistic of a device: a counter of whatever it has. */
static inline bool trigger_is_statistic(const struct trigger *t)
{
	return t->kind == TRIGGER_XSTAT || t->kind == TRIGGER_DEVICE;
}
/* Only the change of a level counts; other conditions are met again and again. */
bool trigger_is_level(const struct trigger *t);
/* "12 packets", "61.2 us": a value of this trigger. */
void trigger_value(const struct trigger *t, double value, char *out, size_t size);

#endif
