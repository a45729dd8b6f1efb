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
/* A number with an optional unit: K, M, G, T (also KiB, …) are powers of 1024, kB, MB, GB, TB of
 * 1000. 0 or -EINVAL, -ERANGE. */
int parse_size(const char *text, uint64_t *bytes);
/* Seconds, above zero, with an optional fraction; another unit may follow: ns, us, ms, s, m or min,
 * h. 0 or -EINVAL, -ERANGE. */
int parse_seconds(const char *text, uint64_t *ns);

/* For people: 12,345,678 and 12.3 M. buf takes 32 bytes and is returned. */
#define FORMAT_LEN 32
char *format_count(char buf[FORMAT_LEN], uint64_t n);
char *format_si(char buf[FORMAT_LEN], double v);
/* "12.3 K", by powers of 1024; "12.3 us". */
char *format_binary(char buf[FORMAT_LEN], double v);
char *format_ns(char buf[FORMAT_LEN], double ns);
/* "331 ns": v with an SI prefix, rounded to that many digits. */
char *format_unit(char buf[FORMAT_LEN], double v, int digits, const char *unit);
char *format_mac(char buf[FORMAT_LEN], const uint8_t mac[6]);

#endif
