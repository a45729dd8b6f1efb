/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"
#include "size_json.h"

json_t *size_json(uint32_t class)
{
	json_t *j = json_object();

	json_put(j, "bytes_min", json_count(class ? size_limits[class - 1] : 0));
	json_put(j, "bytes_max",
		class < SIZES - 1 ? json_count(size_limits[class] - 1) : json_null());
	return j;
}

json_t *sizes_json(const uint64_t packets[SIZES])
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < SIZES; i++) {
		json_t *j = size_json(i);

		json_put(j, "packets", json_count(packets[i]));
		json_array_append_new(list, j);
	}
	return list;
}
