/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that a mistyped word probably means, for messages. */
#ifndef RINGTAP_BASE_NEAREST_H
#define RINGTAP_BASE_NEAREST_H

#include <stddef.h>

#define NEAREST_LEN 64 /* longer words and names are near to nothing */

struct nearest {
	const char *word;
	size_t word_len;
	char best[NEAREST_LEN]; /* "" so far */
	unsigned distance;      /* 2 for a letter inserted, left out, replaced or swapped with the
				 * next; 1 for a beginning */
	char text[NEAREST_LEN + 128];
};

/* len bytes of word count; it has to live as long as n. */
void nearest_begin(struct nearest *n, const char *word, size_t len);
/* Offers a name of len bytes. Case does not matter, and a beginning of a name is near to it. */
void nearest_offer(struct nearest *n, const char *name, size_t len);
/* The same of each of "a|b|c". */
void nearest_offer_all(struct nearest *n, const char *choices);
/* "did you mean 'NAME'?", or otherwise if no name is near. Lives as long as n and otherwise. */
const char *nearest_advice(struct nearest *n, const char *otherwise);

#endif
