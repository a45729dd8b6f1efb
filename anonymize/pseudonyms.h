/* SPDX-License-Identifier: BSD-3-Clause */
/* Pseudonyms of addresses, by a key: one for each, and of the same key always the same. */
#ifndef RINGTAP_ANONYMIZE_PSEUDONYMS_H
#define RINGTAP_ANONYMIZE_PSEUDONYMS_H

#include <stdint.h>

#define PSEUDONYM_KEY 32u /* bytes: 16 of AES, and 16 that become CryptoPAn's padding */

struct pseudonyms;

/* NULL: no memory. Free it, which also clears the key. */
struct pseudonyms *pseudonyms_new(const uint8_t key[PSEUDONYM_KEY]);
void pseudonyms_free(struct pseudonyms *p);

/* Addresses that have their first n bits in common have pseudonyms that have exactly n bits in
 * common (CryptoPAn), of one version. Addresses with a meaning of their own stay; docs/anonymize.md
 * lists them. in and out may be the same. */
void pseudonym_ipv4(struct pseudonyms *p, const uint8_t in[4], uint8_t out[4]);
void pseudonym_ipv6(struct pseudonyms *p, const uint8_t in[16], uint8_t out[16]);
/* The bits for groups and local administration stay, and groups of protocols; other addresses are
 * permuted. */
void pseudonym_mac(struct pseudonyms *p, const uint8_t in[6], uint8_t out[6]);

/* CryptoPAn as published, for addresses of up to 128 bits (Xu, Fan, Ammar, Moon, 2002), but that
 * the first bits of kept stay. */
void cryptopan(
	const struct pseudonyms *p, const uint8_t *in, unsigned bits, unsigned kept, uint8_t *out);

#endif
