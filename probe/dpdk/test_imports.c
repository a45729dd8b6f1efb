/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that imports a function of the program that loads it: imports_test.c. */
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
