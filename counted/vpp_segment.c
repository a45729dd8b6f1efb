/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment is read by pread(), not mapped: who has the file may cut it, and an access behind its
 * end would be a SIGBUS. Its pointers are VPP's, which are relative to the one in its header. In
 * front of a vector are eight bytes, which begin with its number of elements.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counted.h"

#define VERSION     2
#define ENTRIES_MAX (1u << 17)
#define THREADS_MAX 1024u
#define ERRORS_MAX  (1u << 16)
#define ERRORS      "/node/errors" /* by thread, then by error */
#define PREFIX      "/err/"        /* link to an error */

enum { SIMPLE = 2, SYMLINK = 6 }; /* stat_directory_type_t */

struct header {
	uint64_t version, base, epoch, in_progress, directory;
};

struct entry {
	uint32_t type, pad;
	union {
		uint64_t data;
		struct {
			uint32_t entry, index;
		};
	};
	char name[128];
};

struct errors {
	uint32_t entry; /* in the directory */
	size_t count;
	uint64_t *sums; /* over all threads */
};

static int read_at(int fd, uint64_t offset, void *to, size_t len)
{
	ssize_t n = offset > INT64_MAX - len ? 0 : pread(fd, to, len, (off_t)offset);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EPROTO;
}

/* A vector, with its memory from malloc(), of at most max elements. */
static int read_vector(int fd, const struct header *h, uint64_t pointer, size_t element,
	uint32_t max, void **out, size_t *count)
{
	uint64_t at = pointer - h->base;
	uint32_t len;
	int ret = pointer < h->base || at < sizeof(*h) ? -EPROTO
						       : read_at(fd, at - 8, &len, sizeof(len));

	*out = NULL;
	*count = 0;
	if (ret || len > max)
		return ret ? ret : -EPROTO;
	*out = malloc(len ? len * element : 1);
	if (!*out)
		return -ENOMEM;
	*count = len;
	return read_at(fd, at, *out, len * element);
}

static int add_thread(int fd, const struct header *h, uint64_t pointer, struct errors *e)
{
	uint64_t *values;
	size_t count;
	int ret =
		read_vector(fd, h, pointer, sizeof(*values), ERRORS_MAX, (void **)&values, &count);

	for (size_t i = 0; !ret && i < count && i < e->count; i++)
		e->sums[i] += values[i];
	free(values);
	return ret;
}

static int read_errors(
	int fd, const struct header *h, const struct entry *list, size_t count, struct errors *e)
{
	uint64_t *threads = NULL;
	size_t thread_count = 0;
	int ret;

	for (e->entry = 0; e->entry < count; e->entry++)
		if (list[e->entry].type == SIMPLE && !strcmp(list[e->entry].name, ERRORS))
			break;
	if (e->entry == count)
		return 0; /* no node has registered any */
	e->sums = calloc(ERRORS_MAX, sizeof(*e->sums));
	if (!e->sums)
		return -ENOMEM;
	e->count = ERRORS_MAX;
	ret = read_vector(fd, h, list[e->entry].data, sizeof(*threads), THREADS_MAX,
		(void **)&threads, &thread_count);
	for (size_t i = 0; !ret && i < thread_count; i++)
		ret = add_thread(fd, h, threads[i], e);
	free(threads);
	return ret;
}

static void put(struct counted *c, const struct entry *list, size_t count, const struct errors *e)
{
	const size_t prefix = sizeof(PREFIX) - 1;

	for (size_t i = 0; i < count; i++) {
		const struct entry *one = &list[i];
		size_t len = strnlen(one->name, sizeof(one->name));

		if (one->type == SYMLINK && one->entry == e->entry && one->index < e->count &&
			e->sums[one->index] && !strncmp(one->name, PREFIX, prefix))
			counted_put(c, one->name + prefix, len - prefix, NULL, e->sums[one->index]);
	}
}

/* It is at rest and, if epoch is not 0, has not changed since. */
static int read_header(int fd, struct header *h, uint64_t epoch)
{
	int ret = read_at(fd, 0, h, sizeof(*h));

	if (!ret && h->version != VERSION)
		return -EPROTONOSUPPORT;
	return !ret && (h->in_progress || (epoch && h->epoch != epoch)) ? -EAGAIN : ret;
}

int counted_take_segment(struct counted *c, int fd)
{
	struct entry *list = NULL;
	struct errors e = {0};
	struct header h, after;
	size_t count = 0;
	int ret;

	/* Memory, whose reading does not wait for anybody. */
	if (fcntl(fd, F_GET_SEALS) < 0)
		return -EPROTO;
	ret = read_header(fd, &h, 0);
	if (!ret)
		ret = read_vector(
			fd, &h, h.directory, sizeof(*list), ENTRIES_MAX, (void **)&list, &count);
	for (size_t i = 0; i < count; i++)
		list[i].name[sizeof(list[i].name) - 1] = 0;
	if (!ret)
		ret = read_errors(fd, &h, list, count, &e);
	/* Pointers may have been wrong only as VPP was moving what they point to. */
	if ((!ret || ret == -EPROTO) && read_header(fd, &after, h.epoch) == -EAGAIN)
		ret = -EAGAIN;
	if (!ret)
		put(c, list, count, &e);
	free(e.sums);
	free(list);
	return ret;
}
