/* SPDX-License-Identifier: BSD-3-Clause */
/* An ELF file of another user's process, as the injector and the tracer read it. The input is the
 * file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "usdt/events.h"
#include "inject/image.h"

#define PLACES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_text(const char *text, size_t room)
{
	size_t len = strnlen(text, room);

	if (len == room)
		abort();
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

static void use_image(const char *path)
{
	struct rt_image image;

	if (rt_image_open_file(&image, path))
		return;
	(void)rt_image_ours(&image);
	(void)rt_image_symbol(&image, "rte_eal_init");
	(void)rt_image_has_hidden(&image, "rte_version");
	(void)rt_image_code(&image, "\x0f\x05", 2);
	(void)rt_image_number(&image, "DPDK ");
	rt_image_close(&image);
}

static void use_events(const char *path)
{
	struct usdt_place places[PLACES];
	struct usdt_events events = {0};

	(void)elf_events(path, &events);
	for (size_t i = 0; i < events.count; i++)
		assert_text(events.list[i].name, sizeof(events.list[i].name));
	elf_events_free(&events);
	if (elf_places(path, "ringtap", "rx_burst", places, PLACES) > PLACES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[64];

	if (fd < 0)
		fd = memfd_create("elf", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	use_image(path);
	use_events(path);
	return 0;
}
