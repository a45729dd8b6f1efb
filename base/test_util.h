/* SPDX-License-Identifier: BSD-3-Clause */
/* For unit tests only. */
#ifndef RINGTAP_BASE_TEST_UTIL_H
#define RINGTAP_BASE_TEST_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Makes a folder below the working folder (a build folder, so on disk) and changes to it; the other
 * removes it with all its files. */
void test_folder_enter(void);
void test_folder_leave(void);

/* Between these two, standard output goes to memory. The second returns what has come, less than
 * 64 KiB, up to the next call. A test that fails in between has no output of its own. */
void test_stdout_begin(void);
const char *test_stdout_end(void);

/* The file's content; the caller frees. */
uint8_t *test_read(const char *path, size_t *len);
void test_write(const char *path, const void *data, size_t len);

/* How often what is in the text. */
unsigned test_count(const char *text, const char *what);

/* Writes count blocks with packets of len bytes; packet k has number first + k. Returns the length.
 */
size_t test_epbs(uint8_t *dst, unsigned count, uint32_t len, uint64_t first);

/* A capture file as libpcap reads it. */
struct test_pcap {
	unsigned packets;
	uint64_t first, last; /* numbers in the first and last packet */
	unsigned gaps;        /* packets whose number does not follow the one before */
	uint64_t first_ns;
	int nanoseconds, linktype, snaplen;
};
/* Fails the test if libpcap does not like the file. */
struct test_pcap test_pcap_read(const char *path);

/* Walks the blocks of a pcapng file and fails the test if they are not whole. Counts them by type
 * and keeps a copy of the last ISB of each interface. */
struct test_blocks {
	unsigned shb, idb, epb, isb;
	unsigned packets_of[8]; /* by interface */
	uint64_t stat_of[8][9]; /* last ISB: by interface and option code (4 … 8) */
	int ended[8];           /* last ISB has isb_endtime */
};
struct test_blocks test_blocks_read(const char *path);

#endif
