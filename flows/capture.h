/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture of headers for a ledger: of all packets, or of one of N. */
#ifndef RINGTAP_FLOWS_CAPTURE_H
#define RINGTAP_FLOWS_CAPTURE_H

#include "fates/session.h"
#include "packet/filter.h"

struct flows_request {
	const char *expression; /* a libpcap expression; NULL: all packets */
	enum ringtap_tags tags;
	struct filter filter; /* the expression, compiled */
	unsigned directions;  /* 0: received packets, with ids both */
	bool ids;
	uint32_t sample; /* one of N packets; 0: by the rate, which flows_attach() sets */
	bool by_rate;    /* it did */
};

/* Attaches s->cap to the ports of s->app. 0, or -errno after printing why. */
int flows_attach(struct fates_session *s, struct flows_request *r);

/* N, so that the application pays at most 2 % for packets that are copied. */
uint32_t flows_sample_of(double packets_per_second);
/* N for the packets that were counted in this time, if the N of the beginning is much too small or
 * large for them; else 0. */
uint32_t flows_sample_now(const struct flows_request *r, uint64_t counted, double seconds);

#endif
