/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of `ringtap record`. */
#ifndef RINGTAP_CLI_RECORD_CONFIG_H
#define RINGTAP_CLI_RECORD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/command.h"
#include "packet/filter.h"
#include "ringtap/reader.h"

#define CONFIG_IFACES_MAX 64
#define COMMENTS_MAX      16

/* One -i, or the defaults that stand before any. Texts are argv's. */
struct iface_config {
	const char *spec;   /* [APP:]PORT as given; NULL: all ports of the only application */
	const char *filter; /* NULL: all packets */
	const char *ifname, *ifdescr;
	uint32_t snaplen; /* bytes */
	unsigned directions;
	int queue;              /* -1: all */
	struct filter compiled; /* of filter */
};

/* When to stop, and when to go on to the next file. 0: never. */
struct limits {
	uint64_t packets;
	uint64_t bytes; /* of a file */
	uint64_t files;
	uint64_t duration_ns;
	uint64_t interval_ns; /* of the wall clock; only for going on */
};

enum compress { COMPRESS_NONE = -1, COMPRESS_ZSTD, COMPRESS_LZ4 };

struct record_config {
	const char *command; /* in messages; "record", or of a program that records as well */
	struct iface_config defaults;
	struct iface_config ifaces[CONFIG_IFACES_MAX];
	unsigned iface_count; /* at least 1 once checked */
	struct limits stop;
	struct limits rotate;
	bool rotating;
	bool time_first;        /* in names of files, before the number */
	const char *print_name; /* file that gets the names of closed files; "-": standard output */
	const char *path;       /* "-": standard output; NULL: the default name */
	const char *comments[COMMENTS_MAX + 1]; /* NULL behind the last */
	enum compress compress;
	uint64_t threads; /* one reads and writes, the others compress */
	struct ringtap_capture_options capture;
	bool pcap, group_read, no_direct, quiet, json, fail_on_loss;
	bool quiet_end; /* the end of an application is reported in the file only */
	bool fates;     /* ids as well */
	bool attach;    /* load the probe where it is missing */
	bool list_interfaces, dump_filter, statistics;
};

void config_init(struct record_config *c);
/* The set() of the command; prints what is wrong. */
int config_set(void *ctx, int id, const struct option_value *v);
/* After the last option: checks combinations and compiles the filters. Prints what is wrong. */
int config_check(struct record_config *c);
void config_free(struct record_config *c);

/* Limits of --buffer, bytes. */
#define BUFFER_MIN 65536
#define BUFFER_MAX (UINT64_C(64) << 30)

#define THREADS_MAX 64

#define RECORD_OPTION_COUNT 37

extern const struct option_def record_options[RECORD_OPTION_COUNT];

#endif
