/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of `ringtap record`. */
#ifndef RINGTAP_CLI_RECORD_CONFIG_H
#define RINGTAP_CLI_RECORD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/command.h"
#include "serve/peer.h"
#include "sink/capture_file.h"
#include "target/capture_config.h"
#include "ringtap/reader.h"

/* When to stop, and when to go on to the next file. 0: never. */
struct limits {
	uint64_t packets;
	uint64_t bytes; /* size of a file */
	uint64_t files;
	uint64_t duration_ns;
	uint64_t interval_ns; /* interval by the wall clock; only for going on */
};

#define LISTEN_ALLOWED_MAX 16

/* A file for each. */
enum split { SPLIT_NONE, SPLIT_INTERFACE, SPLIT_DIRECTION };

struct record_config {
	struct capture_config capture;
	struct iface_config
		*last; /* the last -i, or the defaults: what options of one are set in */
	struct output_options output;
	struct limits stop;
	struct limits rotate;
	bool rotating;
	enum split split;
	bool time_first;  /* in names of files, before the number */
	const char *html; /* NULL: no page */
	const char *key;  /* file with the key of pseudonyms; NULL: a random one */
	bool anonymize;
	const char *print_name; /* file that gets the names of closed files; "-": standard output */
	const char *path;       /* "-": standard output; NULL: the default name */
	const char *listen;     /* "[HOST:]PORT" or "unix:PATH", for clients; NULL: a file */
	const char
		*client; /* name of the client of --listen that gets this recording; NULL: none */
	struct peer_network allowed[LISTEN_ALLOWED_MAX]; /* clients on other hosts */
	unsigned allowed_count;
	const char *comments[COMMENTS_MAX + 1]; /* NULL behind the last */
	const char *first;                      /* --first as given; NULL: whole flows */
	char *cuts;                             /* "cut: " and each --cut; NULL: none */
	bool quiet, json, fail_on_loss;
	bool quiet_end; /* the end of an application is reported in the file only */
	bool fates;     /* ids as well */
	bool list_interfaces, dump_filter, statistics;
};

void config_init(struct record_config *c);
/* The set() of the command; prints what is wrong. */
int config_set(void *ctx, int id, const struct option_value *v);
/* The operand() of the command: a target, which gets the defaults wherever it stands. */
int config_operand(void *ctx, const char *text);
/* The values of --cut and --first. 0, or -EINVAL or -ENOMEM after a message. */
int config_cut(struct record_config *c, const char *text);
int config_first(struct record_config *c, const char *text);
/* After the last option: checks combinations and compiles the filters. Prints what is wrong. */
int config_check(struct record_config *c);
void config_free(struct record_config *c);

#define THREADS_MAX 64

#define RECORD_OPTION_COUNT 51

extern const struct option_def record_options[RECORD_OPTION_COUNT];

#endif
