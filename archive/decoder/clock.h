/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock of a recording, as the file describes it: docs/format.md, "The clock in files". */
#ifndef RINGTAP_ARCHIVE_DECODER_CLOCK_H
#define RINGTAP_ARCHIVE_DECODER_CLOCK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_NONE UINT64_MAX

/* A comment that begins with "clock: ". */
struct clock_report {
	bool said;                      /* it is one */
	int8_t synchronized;            /* 1, 0; -1: not known */
	uint64_t error_us, estimate_us; /* CLOCK_NONE: not known */
	int64_t set_ns;                 /* 0: it was not set */
	uint64_t tsc_hz;                /* frequency of an interface's TSC; 0: not known */
	char timestamp[8]; /* an interface's time stamps: "tsc", "nic"; "": not known */
};

struct clock_set {
	int64_t ns, by_ns;
};

/* All reports of a part. */
struct clock {
	uint64_t reports, known, unsynchronized;
	uint64_t error_us, estimate_us; /* the greatest; 0 without reports that say it */
	bool has_error;
	struct clock_set *sets;
	uint32_t set_count;
	uint64_t set_beyond; /* settings that there was no entry for */
};

/* Reads a comment, which is not trusted. */
void clock_parse(struct clock_report *r, const uint8_t *text, size_t len);
/* ns: of the report; of an interface's it is not known, and nothing was set. */
void clock_add(struct clock *c, const struct clock_report *r, int64_t ns);
void clock_clear(struct clock *c);
/* NULL: no memory. null without reports. */
json_t *clock_json(const struct clock *c);

#endif
