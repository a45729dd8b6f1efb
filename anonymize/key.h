/* SPDX-License-Identifier: BSD-3-Clause */
/* The key of pseudonyms. */
#ifndef RINGTAP_ANONYMIZE_KEY_H
#define RINGTAP_ANONYMIZE_KEY_H

#include "pseudonyms.h"

/* Reads the key of a file: 64 hexadecimal digits, and a line end. A file that is missing is made,
 * with a random key, mode 0600. path: NULL for a random key, which is lost at the end. NULL after
 * printing why: the file may be read by others, is another user's, has no key, or is output, where
 * the result goes to. */
struct pseudonyms *key_open(const char *command, const char *path, const char *output);

#endif
