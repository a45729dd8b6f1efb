/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of a peer, and texts for the caller. */
#ifndef RINGTAP_READER_TEXT_H
#define RINGTAP_READER_TEXT_H

#include <stddef.h>

/* Points *err to own if the caller passed no buffer. Empties it. */
static inline void rt_default_text(char **err, size_t *errlen, char *own, size_t size)
{
	if (!*err || !*errlen) {
		*err = own;
		*errlen = size;
	}
	**err = 0;
}

/* Terminates a text that a peer has sent, and replaces control characters. */
void rt_terminate(char *s, size_t size);

/* Copies a text field that the peer may change meanwhile, terminates it, and replaces control
 * characters, as it may be printed to a terminal. */
void rt_copy_text(char *dst, const char *src, size_t size);

#endif
