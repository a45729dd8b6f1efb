/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"
#include "size_json.h"
#include "sizes.h"

json_t *size_json(uint32_t class)
{
	json_t *j = json_object();

	json_object_set_new(j, "bytes_min", json_count(class ? size_limits[class - 1] : 0));
	json_object_set_new(j, "bytes_max",
		class < SIZES - 1 ? json_count(size_limits[class] - 1) : json_null());
	return j;
}
