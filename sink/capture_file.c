/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "capture_file.h"
#include "clock.h"
#include "common/pcapng.h"

/* The longest texts: all comments, or name, description and filter. */
#define BLOCK_MAX ((COMMENTS_MAX + 1) * (RT_PCAPNG_TEXT_MAX + 8) + 1024)

static int put(struct capture_file *f, const uint8_t *buf, int len)
{
	return len < 0 ? len : output_block(&f->out, buf, (size_t)len);
}

static int put_section(struct capture_file *f, uint8_t *buf)
{
	const struct ringtap_pcapng_section_options o = {.size = sizeof(o),
		.application = "ringtap " RINGTAP_VERSION,
		.comments = f->comments};

	return put(f, buf, ringtap_pcapng_section(buf, BLOCK_MAX, &o));
}

static int put_interface(struct capture_file *f, uint8_t *buf, unsigned i)
{
	struct ringtap_pcapng_interface_options o = {.size = sizeof(o), .snaplen = f->snaplen};
	struct ringtap_interface info = {.size = sizeof(info)};
	char clock[CLOCK_TEXT_LEN];
	int ret = ringtap_capture_interface(f->cap, i, &info);

	if (ret)
		return ret;
	if (f->describe)
		f->describe(f->ctx, &info, &o);
	clock_of_interface(clock, f->nic_time ? "nic" : "tsc", info.tsc_hz);
	o.comment = clock;
	return put(f, buf, ringtap_pcapng_interface(f->cap, i, buf, BLOCK_MAX, &o));
}

static int put_interfaces(struct capture_file *f, uint8_t *buf)
{
	int ret = 0;

	while (!ret && f->interfaces < ringtap_capture_interface_count(f->cap)) {
		ret = put_interface(f, buf, f->interfaces);
		f->interfaces += !ret;
	}
	return ret;
}

int capture_file_interfaces(struct capture_file *f)
{
	uint8_t *buf;
	int ret;

	if (f->interfaces >= ringtap_capture_interface_count(f->cap))
		return 0;
	buf = malloc(BLOCK_MAX);
	ret = buf ? put_interfaces(f, buf) : -ENOMEM;
	free(buf);
	return ret;
}

int capture_file_start(struct capture_file *f)
{
	uint8_t *buf = malloc(BLOCK_MAX);
	int ret = buf ? output_start(&f->out) : -ENOMEM;

	f->interfaces = 0;
	if (!ret)
		ret = put_section(f, buf);
	if (!ret)
		ret = put_interfaces(f, buf);
	free(buf);
	return ret;
}

int capture_file_statistics(struct capture_file *f, unsigned interface,
	const struct ringtap_pcapng_statistics_options *o)
{
	uint8_t buf[RT_PCAPNG_ISB_MAX];

	return put(f, buf, ringtap_pcapng_statistics(f->cap, interface, buf, sizeof(buf), o));
}
