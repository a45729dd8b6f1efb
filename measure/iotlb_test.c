/* SPDX-License-Identifier: BSD-3-Clause */
/* The model against caches that are really kept. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "iotlb.h"

#define COUNT 5000u

static uint64_t seed = 88172645463325252ull;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

struct counts {
	uint64_t misses, known, known_misses;
};

/* One cache, most recent page first. */
static struct counts brute_force(
	const uint64_t *address, size_t count, unsigned shift, unsigned entries)
{
	uint64_t *cache = calloc(entries, sizeof(*cache)), hits_before = 0;
	struct counts c = {0};
	unsigned used = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t page = address[i] >> shift;
		bool full = used == entries, hit;
		unsigned at = 0;

		while (at < used && cache[at] != page)
			at++;
		hit = at < used;
		c.misses += !hit;
		c.known += full;
		c.known_misses += full && !hit;
		hits_before += !full && hit;
		if (!hit) {
			used += !full;
			at = used - 1;
		}
		memmove(cache + 1, cache, at * sizeof(*cache));
		cache[0] = page;
	}
	if (used < entries)
		c.known = hits_before;
	free(cache);
	return c;
}

static void assert_as_brute_force(const uint64_t *address, size_t count, unsigned shift)
{
	struct counts c;
	struct iotlb t;

	assert_int_equal(iotlb_model(address, count, shift, &t), 0);
	assert_int_equal(t.accesses, count);
	for (int i = 0; i < IOTLB_SIZES; i++) {
		c = brute_force(address, count, shift, iotlb_entries[i]);
		assert_int_equal(t.misses[i], c.misses);
		assert_int_equal(t.known[i], c.known);
		assert_int_equal(t.known_misses[i], c.known_misses);
	}
	/* A cache that is large enough misses only what it has never seen. */
	c = brute_force(address, count, shift, 65536);
	assert_int_equal(t.pages, c.misses);
}

static void random_addresses_of_many_kinds(void **state)
{
	static uint64_t address[COUNT];

	for (unsigned bits = 4; bits <= 40; bits += 9) {
		for (size_t i = 0; i < COUNT; i++)
			address[i] = any() >> (64 - bits);
		assert_as_brute_force(address, COUNT, 0);
		assert_as_brute_force(address, COUNT, 12);
	}
	/* Some pages far more often than others. */
	for (size_t i = 0; i < COUNT; i++)
		address[i] = any() % (1 + any() % 5000) << 12;
	assert_as_brute_force(address, COUNT, 12);
}

static void circling_is_all_or_nothing(void **state)
{
	static uint64_t address[COUNT];
	struct iotlb t;

	for (size_t i = 0; i < COUNT; i++)
		address[i] = i % 100 << 21;
	assert_int_equal(iotlb_model(address, COUNT, 21, &t), 0);
	assert_int_equal(t.pages, 100);
	assert_int_equal(t.misses[2], COUNT); /* 64 entries */
	assert_int_equal(t.known[2], COUNT - 64);
	assert_int_equal(t.known_misses[2], COUNT - 64);
	assert_int_equal(t.misses[3], 100); /* 128 */
	assert_int_equal(t.known[3], COUNT - 100);
	assert_int_equal(t.known_misses[3], 0);
	assert_as_brute_force(address, COUNT, 21);
}

static void the_smallest_inputs(void **state)
{
	const uint64_t address[] = {UINT64_MAX, UINT64_MAX, 0};
	struct iotlb t;

	assert_int_equal(iotlb_model(address, 0, 12, &t), 0);
	assert_int_equal(t.accesses, 0);
	assert_int_equal(t.misses[0], 0);
	assert_int_equal(iotlb_model(address, 1, 12, &t), 0);
	assert_int_equal(t.misses[8], 1);
	assert_int_equal(iotlb_model(address, 3, 30, &t), 0);
	assert_int_equal(t.misses[0], 2);
	assert_int_equal(t.pages, 2);
}

static void distinct_pages(void **state)
{
	static uint64_t address[2500];

	for (size_t i = 0; i < 2500; i++)
		address[i] = i * 2048;
	assert_true(iotlb_distinct(address, 2500, 12, 1000) == 500);
	assert_true(iotlb_distinct(address, 2500, 11, 1000) == 1000);
	assert_true(iotlb_distinct(address, 2500, 30, 1000) == 1);
	assert_true(isnan(iotlb_distinct(address, 999, 12, 1000)));
	for (size_t i = 1000; i < 2000; i++)
		address[i] = 0;
	assert_true(iotlb_distinct(address, 2500, 12, 1000) == (500 + 1) / 2.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_addresses_of_many_kinds),
		cmocka_unit_test(circling_is_all_or_nothing),
		cmocka_unit_test(the_smallest_inputs),
		cmocka_unit_test(distinct_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
