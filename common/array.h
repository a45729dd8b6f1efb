/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays on the heap that grow. free() frees one. */
#ifndef RINGTAP_COMMON_ARRAY_H
#define RINGTAP_COMMON_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void *rt_array_resized(void *list, size_t count, size_t item)
{
	return count > PTRDIFF_MAX / item ? NULL : realloc(list, count * item);
}

static inline void *rt_array_with_one_more(void *list, size_t count, size_t item)
{
	return count & (count - 1) ? list : rt_array_resized(list, count ? 2 * count : 1, item);
}

static inline void *rt_array_with_room(void *list, size_t *room, size_t need, size_t item)
{
	size_t more = *room ? *room : 16;

	if (need <= *room)
		return list;
	while (more < need)
		more = more > SIZE_MAX / 2 ? need : 2 * more;
	list = rt_array_resized(list, more, item);
	if (list)
		*room = more;
	return list;
}

/* Appends a zeroed item to list, an array of count items, and counts it. The array's room is the
 * next power of two, so nothing else may allocate it; count may become less. Returns the item, or
 * NULL without memory: then nothing has changed. */
#define rt_array_add(list, count)                                                   \
	({                                                                          \
		void *more_ = rt_array_with_one_more(list, count, sizeof(*(list))); \
		if (more_) {                                                        \
			(list) = more_;                                             \
			memset(&(list)[count], 0, sizeof(*(list)));                 \
		}                                                                   \
		more_ ? &(list)[(count)++] : NULL;                                  \
	})

/* Makes list, an array with room for room items (size_t), large enough for need items. New items
 * are not initialized. Returns 0 or -ENOMEM: then nothing has changed. */
#define rt_array_room(list, room, need)                                                  \
	({                                                                               \
		size_t need_ = (need);                                                   \
		void *more_ = rt_array_with_room(list, &(room), need_, sizeof(*(list))); \
		if (more_)                                                               \
			(list) = more_;                                                  \
		more_ || !need_ ? 0 : -ENOMEM;                                           \
	})

/* Makes list, an array of count items, one of at least need items; new ones are zeroed. Returns 0
 * or -ENOMEM: then nothing has changed. */
#define rt_array_extend(list, count, need)                                                        \
	({                                                                                        \
		size_t wanted_ = (need);                                                          \
		void *more_ = (list);                                                             \
		if (wanted_ > (count)) {                                                          \
			more_ = rt_array_resized(list, wanted_, sizeof(*(list)));                 \
			if (more_) {                                                              \
				(list) = more_;                                                   \
				memset(&(list)[count], 0, (wanted_ - (count)) * sizeof(*(list))); \
				(count) = wanted_;                                                \
			}                                                                         \
		}                                                                                 \
		wanted_ <= (count) ? 0 : -ENOMEM;                                                 \
	})

#endif
