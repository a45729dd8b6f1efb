/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures of callers that were compiled with another version of the headers. */
#ifndef RINGTAP_READER_VERSIONS_H
#define RINGTAP_READER_VERSIONS_H

#include <stddef.h>

/* The size of a structure whose last field is this one, without padding: as of its first version.
 */
#define RT_END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* Copies the caller's structure of `theirs` bytes to the library's version of it, of size bytes;
 * the rest is zero. -EINVAL: theirs is less than least; -E2BIG: a byte beyond size is not zero. */
int rt_copy_in(void *dst, size_t size, size_t least, const void *src, size_t theirs);

/* The same for options, whose first field is their size; NULL: all zero. Errors have a sentence in
 * err. */
int rt_options_in(void *dst, size_t size, size_t least, const void *src, char *err, size_t errlen);

/* Copies what fits of a library structure to the caller's, whose size its first field holds.
 * -EINVAL: that is less than itself. */
int rt_copy_out(void *dst, const void *src, size_t size);

#endif
