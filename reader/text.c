/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>

#include "text.h"

/* Bytes of the UTF-8 character at s; 0: it is none, or a control character, C1 among them (U+009B
 * is to many terminals what ESC [ is). */
static unsigned character(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] < ' ' || s[0] == 0x7f || s[0] > 0xf4)
		return 0;
	for (unsigned i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xe0 && s[1] < 0xa0) ||
		(s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
		(s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return len;
}

/* Names of an application may be printed to a terminal. */
static void clean(char *s)
{
	while (*s) {
		unsigned len = character(s);

		if (!len)
			*s = '?';
		s += len ? len : 1;
	}
}

void rt_copy_text(char *dst, const char *src, size_t size)
{
	bool ended = false;

	for (size_t i = 0; i < size; i++) {
		char c = src[i]; /* read once: the application may change it */

		ended = ended || !c || i == size - 1;
		dst[i] = ended ? 0 : c;
	}
	clean(dst);
}

void rt_terminate(char *s, size_t size)
{
	s[size - 1] = 0;
	for (char *c = s; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	clean(s);
}
