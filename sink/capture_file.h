/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of a capture: the blocks before, between and behind its packets. */
#ifndef RINGTAP_SINK_CAPTURE_FILE_H
#define RINGTAP_SINK_CAPTURE_FILE_H

#include <stdbool.h>

#include "output.h"
#include "ringtap/reader.h"

#define COMMENTS_MAX 17 /* 16 of --capture-comment, and one of --cut */

/* Zeros, but for out, cap and what the file should contain. */
struct capture_file {
	struct output out; /* open */
	struct ringtap_capture *cap;
	const char *const *comments; /* comments of the section, at most COMMENTS_MAX, and NULL
					behind them; NULL: none */
	bool nic_time;               /* time stamps are those of the NIC */
	uint32_t snaplen;            /* one for all interfaces; 0: each has its own */
	/* Adds the texts of an interface; NULL: there are none. */
	void (*describe)(const void *ctx, const struct ringtap_interface *interface,
		struct ringtap_pcapng_interface_options *o);
	const void *ctx;
	unsigned interfaces; /* that the file describes */
};

/* 0 or -errno. */

/* Empties the file, and writes its section and interfaces. */
int capture_file_start(struct capture_file *f);
/* Describes interfaces that have appeared. */
int capture_file_interfaces(struct capture_file *f);
/* Statistics of one interface. */
int capture_file_statistics(struct capture_file *f, unsigned interface,
	const struct ringtap_pcapng_statistics_options *o);

#endif
