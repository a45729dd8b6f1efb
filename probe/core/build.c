/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>

#include <rte_version.h>

#include "build.h"
#include "bus.h"

static char why[RT_BUILD_TEXT];

#define REFUSE(...) (snprintf(why, sizeof(why), __VA_ARGS__), -ENOTSUP)

int rt_build_check(void)
{
	/* The control thread would use DPDK's memory after its end. */
	if (!rt_bus_known())
		return REFUSE("struct rte_bus of %.32s is unknown, so that DPDK's end would not be "
			      "noticed; install a newer ringtap",
			rte_version());
	return 0;
}

const char *rt_build_why(void)
{
	return why;
}
