/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of a capture: ports, parts of their packets, and how. */
#ifndef RINGTAP_TARGET_CAPTURE_CONFIG_H
#define RINGTAP_TARGET_CAPTURE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/command.h"
#include "common/proto.h"
#include "packet/cut.h"
#include "ringtap/reader.h"

#define CAPTURE_IFACES_MAX 64

/* Limits of --buffer, bytes. */
#define BUFFER_MIN 65536
#define BUFFER_MAX (UINT64_C(64) << 30)

#define FIRST_ARG       "SIZE/flow|Np/flow"
#define FIRST_FLOWS_MIN (1 << RT_FIRST_BITS_MIN)
#define FIRST_FLOWS_MAX (1 << RT_FIRST_BITS_MAX)

/* One target, or the defaults. Texts are argv's. */
struct iface_config {
	const char *spec;   /* as given; NULL: all ports of the only application */
	bool port_alone;    /* it may be a port only */
	const char *filter; /* NULL: all packets */
	const char *ifname, *ifdescr;
	uint32_t snaplen; /* bytes */
	unsigned directions;
	int queue;              /* -1: all */
	struct filter compiled; /* filter as a program */
};

struct capture_config {
	const char *command; /* in messages */
	struct iface_config defaults;
	struct iface_config ifaces[CAPTURE_IFACES_MAX];
	unsigned iface_count;   /* at least 1 once checked */
	enum ringtap_tags tags; /* what the filters of all interfaces mean */
	bool inner;             /* they apply below tunnels, too */
	struct cut cuts[CUT_MAX];
	unsigned cut_count;
	struct ringtap_capture_options options;
	bool one_linktype; /* as files of pcap have */
	bool attach;       /* load the probe where it is missing */
};

/* --sample, for a field uint32_t. */
#define SAMPLE_OPTION(config, field)                                                                \
	{                                                                                           \
		OPTION_TO(config, field), OPTION_NUMBER, 0, "sample", "N", NULL, 1, RT_SAMPLE_MAX,  \
			"Take one of N packets, N a power of two, at random and before the filter;" \
			" where they have ids, those of one id together (default: 1, all)"          \
	}

/* --tags, for a field enum ringtap_tags. */
#define TAGS_OPTION(config, field)                                                                \
	{                                                                                         \
		OPTION_TO(config, field), OPTION_CHOICE, 0, "tags", "any|as-is", "any|as-is", 0,  \
			0,                                                                        \
			"Filters match packets with and without VLAN tags, unless they say vlan " \
			"(any, the default), or only as libpcap defines them: udp port 53 "       \
			"matches no tagged packet (as-is)"                                        \
	}

/* --inner, for a field bool. */
#define INNER_OPTION(config, field)                                                                \
	{                                                                                          \
		OPTION_TO(config, field), OPTION_FLAG, 0, "inner", NULL, NULL, 0, 0,               \
			"Filters also match a packet with a packet inside that they match: below " \
			"VXLAN, Geneve, GRE, GTP-U, MPLS or IP in IP, up to two of them"           \
	}

/* 0, or -EINVAL after a message: not a power of two. */
int sample_check(const char *command, uint32_t n);

/* All packets of all ports. */
void capture_config_init(struct capture_config *c, const char *command);
/* Where no interface is given, the defaults become one. Checks texts and compiles filters. 0, or
 * -EINVAL after a message. */
int capture_config_check(struct capture_config *c);
/* Compiles an expression with tunnels and cuts, for ports of a link type; otherwise as
 * filter_compile(). */
int capture_config_compile(const struct capture_config *c, struct filter *f, const char *expression,
	enum ringtap_tags tags, uint16_t linktype, char *err, size_t err_len);
/* Adds a cut. 0, or -EINVAL after a message. */
int capture_config_cut(struct capture_config *c, const char *text);
/* Sets the limit of flows by FIRST_ARG. 0, or -EINVAL after a message. */
int capture_config_first(struct capture_config *c, const char *text);
/* The largest snaplen of an interface, and the smallest if least is not NULL. */
uint32_t capture_config_snaplen(const struct capture_config *c, uint32_t *least);
/* Frees the filters. */
void capture_config_free(struct capture_config *c);

#endif
