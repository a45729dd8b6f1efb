/* SPDX-License-Identifier: BSD-3-Clause */
/* --html: counts over time, as a page. All functions do nothing without it. */
#ifndef RINGTAP_CLI_RECORD_PAGE_H
#define RINGTAP_CLI_RECORD_PAGE_H

#include <stdint.h>

#include "base/out_file.h"

struct recorder;

/* Cumulative counts of an interface. */
enum page_count { PAGE_SEEN, PAGE_CAPTURED, PAGE_LOST, PAGE_COUNTS };

struct page_sample {
	uint64_t ns; /* since the beginning */
	unsigned count;
	uint64_t (*list)[PAGE_COUNTS]; /* count interfaces; those that come later had nothing */
};

#define PAGE_SAMPLES 1024

struct record_page {
	struct out_file file;
	unsigned count;
	uint64_t every_ns; /* between samples; doubled whenever there is no room for more */
	struct page_sample samples[PAGE_SAMPLES];
};

/* Takes a sample if it is time for one; last: in any case. */
void page_sample(struct recorder *r, uint64_t now_mono_ns, bool last);
/* Writes and closes it. 0, or -errno after printing why. */
int page_write(struct recorder *r);
/* Removes the file if it was not written. */
void page_free(struct record_page *p);

#endif
