/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters that a switch reports, at the beginning and, after a zero byte, at the end, or VPP's
 * statistics segment, which begins with its version: their names go to terminals, and their
 * differences are added up. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counted/interfaces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct counted *c)
{
	if (c->count > COUNTED_MAX)
		abort();
	for (size_t i = 0; i < c->count; i++) {
		const char *name = c->list[i].name;
		size_t len = strnlen(name, COUNTED_NAME_LEN);

		if (!len || len == COUNTED_NAME_LEN)
			abort();
		for (size_t k = 0; k < len; k++)
			if (name[k] < ' ' || name[k] > '~')
				abort();
	}
	for (size_t i = 0; c->threads && i < c->threads->count; i++)
		if (i >= COUNTED_THREADS || !memchr(c->threads->list[i].name, 0, COUNTED_NAME_LEN))
			abort();
}

/* The packets of the counters that are named have the sum that is reported. */
static void check_match(const struct counted *c, uint64_t packets)
{
	const struct counted_match m = counted_match(c, packets);
	uint64_t sum = 0;

	for (size_t i = 0; i < c->count; i++)
		if (m.used[i] && __builtin_add_overflow(sum, counted_since(&c->list[i]), &sum))
			abort();
	if (sum != m.packets || sum > packets)
		abort();
}

static void take_segment(struct counted *c, const uint8_t *data, size_t size)
{
	static struct counted_interfaces interfaces;
	int fd = memfd_create("segment", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)counted_take_segment(c, fd);
	(void)counted_take_interfaces(&interfaces, fd);
	counted_interfaces_match(&interfaces, 0, "0000:00:08.0");
	if (interfaces.count > COUNTED_INTERFACES_MAX)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct counted c = {.source = size && data[0] == 2 ? &counted_vpp : &counted_open_vswitch,
		.list = calloc(COUNTED_MAX, sizeof(struct counted_value))};
	char *text = malloc(size + 2);
	uint64_t packets = 0;

	if (!c.list || !text)
		abort();
	memcpy(text, data, size);
	text[size] = text[size + 1] = 0;
	if (size && data[0] == 2)
		take_segment(&c, data, size);
	else
		counted_take_coverage(&c, text);
	c.threads = calloc(1, sizeof(*c.threads));
	if (!c.threads)
		abort();
	counted_take_threads(&c, text);
	c.begun = true;
	counted_take_threads(&c, text + strlen(text) + (strlen(text) < size));
	counted_take_coverage(&c, text + strlen(text) + (strlen(text) < size));
	check(&c);
	check_match(&c, UINT64_MAX);
	for (size_t i = 0; i < c.count; i += 2)
		packets += counted_since(&c.list[i]);
	check_match(&c, packets);
	free(text);
	counted_free(&c);
	return 0;
}
