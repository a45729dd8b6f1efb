/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the loader (loader.c) and the object that it loads (object.c). */
#ifndef RINGTAP_PROBE_CONTROL_API_H
#define RINGTAP_PROBE_CONTROL_API_H

#include <stdint.h>

#include "ringtap/probe.h"

#define RT_API_VERSION 4
#define RT_API_SYMBOL  "ringtap_probe_api"

/* The functions of ringtap/probe.h. */
struct rt_probe_api {
	uint32_t version;
	uint32_t size; /* bytes of this structure */
	int (*start)(void);
	const char *(*why)(void); /* it returned -ENOTSUP; "": for another reason */
	void (*stop)(void);
	int (*port_name)(uint16_t port, const char *name);
	int (*port_missed)(uint16_t port, uint64_t packets);
	int (*port_stamped)(uint16_t port);
	void (*received_until)(uint64_t ns);
	int (*port_source)(uint16_t port, const struct ringtap_probe_source *source);
	int (*port_count)(uint16_t port, const struct ringtap_probe_counts *more);
};

#endif
