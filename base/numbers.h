/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers: read from arguments, and printed for people. */
#ifndef RINGTAP_BASE_NUMBERS_H
#define RINGTAP_BASE_NUMBERS_H

#include <stdint.h>

/* DPDK's headers have an int of that name. */
#undef NS_PER_S
#define NS_PER_S UINT64_C(1000000000)

/* Decimal digits only, at most max. 0 or -EINVAL, -ERANGE. */
int parse_number(const char *text, uint64_t max, uint64_t *out);
/* The longest time that is taken: 36500 days, which may be added to the time of any clock. */
#define TIME_MAX (UINT64_C(36500) * 86400 * NS_PER_S)

/* A number, with a fraction where that makes a whole number of the smallest unit. 0 or -EINVAL,
 * -ERANGE; -ENODATA: it has no unit, and is not zero. bare: what a number without a unit counts, 0
 * to refuse it. */

/* k, M, G: powers of 1000; or no unit. */
int parse_count(const char *text, uint64_t *n);
/* ns, us (also with the letter mu), ms, s, m or min, h, d; up to TIME_MAX. */
int parse_time(const char *text, uint64_t bare, uint64_t *ns);
/* B; K, M, G, T, also KiB, …: powers of 1024; kB, MB, GB, TB: of 1000. */
int parse_size(const char *text, uint64_t bare, uint64_t *bytes);

/* All of these return buf. */
#define FORMAT_LEN 32
/* As the command line takes them: "90s", "256M". */
char *write_time(char buf[FORMAT_LEN], uint64_t ns);
char *write_size(char buf[FORMAT_LEN], uint64_t bytes);
/* For people: 12,345,678 and 12.3 M. */
char *format_count(char buf[FORMAT_LEN], uint64_t n);
char *format_si(char buf[FORMAT_LEN], double v);
/* "64 MiB", by powers of 1024; "12.3 us". */
char *format_bytes(char buf[FORMAT_LEN], double bytes);
char *format_ns(char buf[FORMAT_LEN], double ns);
char *format_mac(char buf[FORMAT_LEN], const uint8_t mac[6]);

#endif
