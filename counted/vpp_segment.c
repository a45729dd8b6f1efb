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
#include "interfaces.h"

#define VERSION      2
#define ENTRIES_MAX  (1u << 17)
#define THREADS_MAX  1024u
#define COUNTERS_MAX (1u << 16)
#define ERRORS       "/node/errors" /* by thread, then by error */
#define ERROR        "/err/"        /* link to an error */
/* By interface; the counters by thread before that. Names of interfaces that were deleted stay. */
#define NAMES     "/if/names"
#define RX        "/if/rx"
#define TX        "/if/tx"
#define INTERFACE "/interfaces/" /* link to a counter of an interface that there is */

/* Counters of interfaces: of packets that also have an error counter, or were never received. */
static const struct {
	const char *counter, *name, *meaning;
} losses[] = {
	{"/if/drops", "drops", "received there, by all nodes"},
	{"/if/punt", "punt", "received there, passed to the host"},
	{"/if/rx-miss", "rx-miss", "missed by the NIC"},
	{"/if/rx-no-buf", "rx-no-buf", "without a buffer for the NIC"},
	{"/if/rx-error", "rx-error", "received with an error"},
	{"/if/tx-error", "tx-error", "not sent, by the driver"},
};

/* Ends of names of error counters whose packets go on. */
static const char *const passed[] = {"/checked packets", "/ACL permit packets",
	"/existing session packets", "/new sessions added", "/L2 input packets",
	"/L2 output packets", "/L2 learn packets", "/L2 learn misses", "/L2 learn hit updates",
	"/L2 mac moves", "/L2 flood packets", "/L2 forward packets", "/L2 forward hits",
	"/L2 forward misses"};

enum { SIMPLE = 2, COMBINED = 3, NAME_VECTOR = 4, SYMLINK = 6 }; /* stat_directory_type_t */

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

struct directory {
	int fd;
	struct header header;
	struct entry *list;
	size_t count;
};

struct counters {
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

/* It is at rest and, if epoch is not 0, has not changed since. */
static int read_header(int fd, struct header *h, uint64_t epoch)
{
	int ret = read_at(fd, 0, h, sizeof(*h));

	if (!ret && h->version != VERSION)
		return -EPROTONOSUPPORT;
	return !ret && (h->in_progress || (epoch && h->epoch != epoch)) ? -EAGAIN : ret;
}

/* The result of reading: pointers may have been wrong only as VPP was moving what they point to. */
static int settled(const struct directory *d, int ret)
{
	struct header after;

	if ((!ret || ret == -EPROTO) && read_header(d->fd, &after, d->header.epoch) == -EAGAIN)
		return -EAGAIN;
	return ret;
}

/* Its number; the number of entries: there is none. */
static uint32_t find(const struct directory *d, uint32_t type, const char *name)
{
	uint32_t i = 0;

	while (i < d->count && (d->list[i].type != type || strcmp(d->list[i].name, name)))
		i++;
	return i;
}

/* Combined counters are packets and bytes. */
static int add_thread(const struct directory *d, uint64_t pointer, size_t each, struct counters *c)
{
	uint64_t *values;
	size_t count;
	int ret = read_vector(d->fd, &d->header, pointer, each * sizeof(*values), COUNTERS_MAX,
		(void **)&values, &count);

	for (size_t i = 0; !ret && i < count; i++)
		c->sums[i] += values[i * each];
	if (count > c->count)
		c->count = count;
	free(values);
	return ret;
}

/* None where nothing has registered them. */
static int read_counters(
	const struct directory *d, uint32_t type, const char *name, struct counters *c)
{
	uint64_t *threads = NULL;
	size_t thread_count = 0;
	int ret;

	c->entry = find(d, type, name);
	if (c->entry == d->count)
		return 0;
	c->sums = calloc(COUNTERS_MAX, sizeof(*c->sums));
	if (!c->sums)
		return -ENOMEM;
	ret = read_vector(d->fd, &d->header, d->list[c->entry].data, sizeof(*threads), THREADS_MAX,
		(void **)&threads, &thread_count);
	for (size_t i = 0; !ret && i < thread_count; i++)
		ret = add_thread(d, threads[i], type == COMBINED ? 2 : 1, c);
	free(threads);
	return ret;
}

/* A link to one of the counters, whose name begins so. */
static bool is_link(const struct entry *e, const struct counters *to, const char *prefix)
{
	return e->type == SYMLINK && e->entry == to->entry && e->index < to->count &&
	       !strncmp(e->name, prefix, strlen(prefix));
}

/* Pointers to names, with their memory from malloc(). */
static int read_names(const struct directory *d, uint64_t **names, size_t *count)
{
	uint32_t entry = find(d, NAME_VECTOR, NAMES);

	*names = NULL;
	*count = 0;
	return entry == d->count ? 0
				 : read_vector(d->fd, &d->header, d->list[entry].data,
					   sizeof(**names), COUNTERS_MAX, (void **)names, count);
}

/* A name of an interface, with its memory from malloc(). */
static int read_name(const struct directory *d, uint64_t name, char **text, size_t *len)
{
	int ret = read_vector(d->fd, &d->header, name, 1, COUNTED_NAME_LEN, (void **)text, len);

	if (!ret)
		*len = strnlen(*text, *len);
	return ret;
}

static int put_loss(
	const struct directory *d, uint64_t name, size_t loss, uint64_t packets, void *counted)
{
	char *text, full[2 * COUNTED_NAME_LEN];
	struct counted_value *v;
	size_t len;
	int ret = read_name(d, name, &text, &len);

	if (!ret) {
		snprintf(full, sizeof(full), "%.*s %s", (int)len, text, losses[loss].name);
		v = counted_put(counted, full, strlen(full), losses[loss].meaning, packets);
		if (v)
			v->apart = true;
	}
	free(text);
	return ret == -EPROTO ? 0 : ret; /* the others have names */
}

static int take_losses(
	const struct directory *d, const uint64_t *names, size_t count, size_t loss, void *counted)
{
	struct counters c = {0};
	int ret = read_counters(d, SIMPLE, losses[loss].counter, &c);

	for (size_t i = 0; !ret && i < d->count; i++) {
		const struct entry *one = &d->list[i];

		if (is_link(one, &c, INTERFACE) && one->index < count && names[one->index] &&
			c.sums[one->index])
			ret = put_loss(d, names[one->index], loss, c.sums[one->index], counted);
	}
	free(c.sums);
	return ret;
}

static bool is_passed(const char *name)
{
	const char *reason = strrchr(name, '/');

	for (size_t i = 0; reason && i < sizeof(passed) / sizeof(*passed); i++)
		if (!strcmp(reason, passed[i]))
			return true;
	return false;
}

static int take_errors(const struct directory *d, void *counted)
{
	const size_t prefix = sizeof(ERROR) - 1;
	struct counters c = {0};
	uint64_t *names = NULL;
	size_t count = 0;
	int ret = settled(d, read_counters(d, SIMPLE, ERRORS, &c));

	for (size_t i = 0; !ret && i < d->count; i++) {
		const struct entry *one = &d->list[i];
		bool apart = is_passed(one->name);
		struct counted_value *v;

		if (!is_link(one, &c, ERROR) || !c.sums[one->index])
			continue;
		v = counted_put(counted, one->name + prefix, strlen(one->name) - prefix,
			apart ? "not dropped: counted on their way" : NULL, c.sums[one->index]);
		if (v)
			v->apart = apart;
	}
	free(c.sums);
	if (!ret)
		ret = read_names(d, &names, &count);
	for (size_t i = 0; !ret && i < sizeof(losses) / sizeof(*losses); i++)
		ret = take_losses(d, names, count, i, counted);
	free(names);
	return settled(d, ret);
}

static int put_interface(const struct directory *d, uint64_t name, uint64_t rx, uint64_t tx,
	struct counted_interfaces *out)
{
	size_t len;
	char *text;
	int ret;

	if (!name)
		return 0;
	ret = read_name(d, name, &text, &len);
	if (!ret)
		counted_put_interface(out, text, len, rx, tx);
	free(text);
	return ret;
}

static int take_interfaces(const struct directory *d, void *out)
{
	struct counters rx = {0}, tx = {0};
	uint64_t *names = NULL;
	size_t count = 0;
	int ret = read_counters(d, COMBINED, RX, &rx);

	if (!ret)
		ret = read_counters(d, COMBINED, TX, &tx);
	if (!ret)
		ret = read_names(d, &names, &count);
	for (size_t i = 0; !ret && i < d->count; i++) {
		const struct entry *one = &d->list[i];

		if (is_link(one, &rx, INTERFACE) && one->index < count)
			ret = put_interface(d, names[one->index], rx.sums[one->index],
				one->index < tx.count ? tx.sums[one->index] : 0, out);
	}
	free(names);
	free(rx.sums);
	free(tx.sums);
	return settled(d, ret);
}

static int take(int fd, int (*f)(const struct directory *d, void *ctx), void *ctx)
{
	struct directory d = {.fd = fd};
	int ret;

	/* Memory, whose reading does not wait for anybody. */
	if (fcntl(fd, F_GET_SEALS) < 0)
		return -EPROTO;
	ret = read_header(fd, &d.header, 0);
	if (!ret)
		ret = settled(&d, read_vector(fd, &d.header, d.header.directory, sizeof(*d.list),
					  ENTRIES_MAX, (void **)&d.list, &d.count));
	if (!ret) {
		for (size_t i = 0; i < d.count; i++)
			d.list[i].name[sizeof(d.list[i].name) - 1] = 0;
		ret = f(&d, ctx);
	}
	free(d.list);
	return ret;
}

int counted_take_segment(void *counted, int fd)
{
	return take(fd, take_errors, counted);
}

int counted_take_interfaces(void *interfaces, int fd)
{
	struct counted_interfaces *c = interfaces;
	int ret;

	c->count = c->more = 0;
	ret = take(fd, take_interfaces, c);
	if (ret)
		c->count = c->more = 0;
	return ret;
}
