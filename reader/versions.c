/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "versions.h"

#define SIZE_MAX_IN 4096u /* bytes of a structure; a larger size was never set */

int rt_copy_out(void *dst, const void *src, size_t size)
{
	size_t theirs;

	memcpy(&theirs, dst, sizeof(theirs));
	if (theirs < sizeof(theirs))
		return -EINVAL;
	if (theirs > size)
		theirs = size;
	memcpy((char *)dst + sizeof(theirs), (const char *)src + sizeof(theirs),
		theirs - sizeof(theirs));
	return 0;
}

int rt_copy_in(void *dst, size_t size, size_t least, const void *src, size_t theirs)
{
	const char *bytes = src;

	memset(dst, 0, size);
	if (theirs < least)
		return -EINVAL;
	if (theirs > SIZE_MAX_IN)
		return -E2BIG;
	for (size_t i = size; i < theirs; i++) {
		if (bytes[i])
			return -E2BIG;
	}
	memcpy(dst, src, theirs < size ? theirs : size);
	return 0;
}

int rt_options_in(void *dst, size_t size, size_t least, const void *src, char *err, size_t errlen)
{
	size_t theirs = 0;
	int ret;

	if (!src) {
		memset(dst, 0, size);
		return 0;
	}
	memcpy(&theirs, src, sizeof(theirs));
	ret = rt_copy_in(dst, size, least, src, theirs);
	if (ret)
		snprintf(err, errlen, "%s",
			ret == -EINVAL ? "the size of the options is too small: set it to sizeof"
				       : "an option is of a later version of libringtap");
	return ret;
}
