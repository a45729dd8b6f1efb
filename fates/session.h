/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture of the packets that one application does not offer, and its statistics meanwhile: what
 * drops and held have in common. */
#ifndef RINGTAP_FATES_SESSION_H
#define RINGTAP_FATES_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/one_app.h"
#include "measure/rates.h"
#include "ringtap/fates.h"

struct fates_session {
	/* Set by the caller. */
	const char *command; /* for messages; NULL: fates_take() and attach() print none */
	struct one_app_words words;
	uint32_t snaplen; /* bytes of each packet */
	uint64_t buffer_size;
	/* A packet that was not offered. */
	void (*take)(void *ctx, const struct ringtap_packet *p);
	/* The data of packets that were taken go now; NULL: nothing to do. */
	void (*release)(void *ctx);
	/* The next packets are those of this ring's thread; NULL: it does not matter. */
	void (*from)(void *ctx, const struct ringtap_ring *ring);
	void *ctx;
	/* Attaches cap to what it captures instead, packets without fates and statistics: 0, or
	 * -errno after printing why. NULL: a session of fates. */
	int (*attach)(struct fates_session *s);

	struct one_app app; /* attach is the caller's */
	struct ringtap_app_info info;
	struct ringtap_capture *cap;
	struct ringtap_monitor *mon; /* NULL: without statistics */
	struct ringtap_snapshot *first, *now;
	struct ringtap_packets *walk;
	struct ringtap_fates *fates; /* the last reading */
	uint64_t start_ns, end_ns;   /* CLOCK_MONOTONIC; end 0: it goes on */
	bool ended;                  /* the application has */
	bool over;                   /* all packets were taken */
};

/* Attaches and starts. Returns enum status, other than STATUS_OK after printing why. Free with
 * fates_free() in any case. */
int fates_begin(struct fates_session *s);
void fates_free(struct fates_session *s);

/* Takes packets for up to timeout_ms. 0; 1: it is over; -errno after printing why. */
int fates_take(struct fates_session *s, int timeout_ms);
/* Ends the capture and takes what is left: from then on counts are exact. 0, or -errno after
 * printing why. */
int fates_end(struct fates_session *s);

/* Reads counts and statistics. 0, or -errno after printing why. */
int fates_read(struct fates_session *s);

/* Whether an interface of the capture is among the requested ports. */
bool fates_includes(const struct fates_session *s, uint32_t interface);
/* The name of an interface: buf is returned. */
char *fates_port(const struct fates_session *s, uint32_t interface, char buf[RINGTAP_NAME_LEN]);
/* The same as {index, name}; null where there is no such interface. */
json_t *fates_port_json(const struct fates_session *s, uint32_t interface);
/* Its port in the statistics; RINGTAP_NO_INDEX: there is none. */
uint32_t fates_stats_port(const struct fates_session *s, uint32_t interface);
/* From the beginning until the last reading of statistics. False: there are none. */
bool fates_span(const struct fates_session *s, struct span *out);
/* Mbufs that the RX descriptors of the requested ports may hold. */
uint64_t fates_descriptors(const struct fates_session *s);
/* Packets that were not offered and are not in the capture: it was full, or could not have them. */
uint64_t fates_lost(const struct fates_session *s);
/* Packets that threads without a slot sent: their hooks cannot note it, and they are shown as not
 * offered. */
uint64_t fates_sent_unseen(const struct fates_session *s);
/* A port that receives what other ports have received already (bonding, failsafe): it counts at
 * those. RINGTAP_NO_INDEX: there is none. */
uint32_t fates_upper_port(const struct fates_session *s);
/* Queues that are not captured: there were too many. */
uint64_t fates_queues_refused(const struct fates_session *s);
double fates_seconds(const struct fates_session *s);

#endif
