/* SPDX-License-Identifier: BSD-3-Clause */
/* An error and its text, in one call. */
#ifndef RINGTAP_COMMON_FAIL_H
#define RINGTAP_COMMON_FAIL_H

#include <stdarg.h>
#include <stdio.h>

/* Writes the text to err; returns error. */
static inline __attribute__((format(printf, 4, 5))) int rt_fail(
	int error, char *err, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, size, format, args);
	va_end(args);
	return error;
}

#endif
