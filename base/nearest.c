/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "nearest.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

void nearest_begin(struct nearest *n, const char *word, size_t len)
{
	*n = (struct nearest){.word = word, .word_len = len};
	/* One letter in three may be wrong, so none of a word that has two. */
	n->distance = 2 * (unsigned)(len / 3) + 2;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The distance of optimal string alignment; the last three rows of its matrix are kept. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][NEAREST_LEN + 1];

	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			char x = lower(a[i - 1]), y = lower(b[j - 1]);

			row[j] = least(above[j], row[j - 1]) + 1;
			row[j] = least(row[j], above[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
				row[j] = least(row[j], two[j - 2] + 1);
		}
	}
	return rows[a_len % 3][b_len];
}

void nearest_offer(struct nearest *n, const char *name, size_t len)
{
	unsigned d;

	if (!len || len >= NEAREST_LEN || !n->word_len || n->word_len >= NEAREST_LEN)
		return;
	if (n->word_len > 1 && n->word_len <= len && !strncasecmp(n->word, name, n->word_len))
		d = len > n->word_len;
	else
		d = 2 * distance(n->word, n->word_len, name, len);
	/* The first of names that are equally near stays. */
	if (d >= n->distance)
		return;
	n->distance = d;
	snprintf(n->best, sizeof(n->best), "%.*s", (int)len, name);
}

void nearest_offer_all(struct nearest *n, const char *choices)
{
	for (const char *p = choices; *p;) {
		size_t len = strcspn(p, "|");

		nearest_offer(n, p, len);
		p += len + (p[len] == '|');
	}
}

const char *nearest_advice(struct nearest *n, const char *otherwise)
{
	if (!*n->best)
		return otherwise;
	snprintf(n->text, sizeof(n->text), "did you mean '%s'?", n->best);
	return n->text;
}
