/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that imports a function of the program that loads it: imports_test.c. */
#include <stddef.h>

#include "test_imports.h"

int test_call(void)
{
	return test_answer();
}

/* By an address that the loader stores in a slot of its own. */
int test_call_by_address(void)
{
	static int (*volatile const answer)(void) = test_answer;

	return answer();
}

#ifdef TEST_DRIVER
/* A driver of ethdev, by what it imports. */
int test_make_port(void)
{
	return rte_eth_dev_allocate("test") != NULL;
}
#endif
