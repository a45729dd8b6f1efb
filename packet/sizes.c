/* SPDX-License-Identifier: BSD-3-Clause */
#include "sizes.h"

const uint32_t size_limits[SIZES] = {65, 128, 256, 512, 1024, 1519, UINT32_MAX};
const char *const size_names[SIZES] = {"up to 64", "65 to 127", "128 to 255", "256 to 511",
	"512 to 1023", "1024 to 1518", "1519 or more"};

uint32_t size_class(uint32_t length)
{
	uint32_t i = 0;

	while (length >= size_limits[i] && i < SIZES - 1)
		i++;
	return i;
}
