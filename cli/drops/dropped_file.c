/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/packet_file.h"
#include "base/util.h"
#include "sink/sink.h"
#include "common/pcapng.h"
#include "common/record.h"
#include "dropped_file.h"
#include "fates/tables.h"

#define BUFFER    (1u << 20)
#define BLOCK_MAX (2 * RT_PCAPNG_TEXT_MAX + 1024) /* block of an interface or of the section */
#define COMMENT   1                               /* code of opt_comment, pcapng section 3.5 */
#define INBOUND   1u                              /* bit of epb_flags */

struct dropped_file {
	struct sink *sink;
	const char *path;
	bool started, failed;
	unsigned interfaces; /* that the file describes */
	size_t used;
	uint64_t packets, sent; /* in the file; before what is in buf */
	uint8_t buf[BUFFER];
};

static int failed(struct dropped_file *f, int error)
{
	if (f->failed)
		return error;
	f->failed = true;
	message_print("drops: writing %s: %s; what was written before is whole%s", f->path,
		strerror(-error), write_advice(error));
	return error;
}

/* Makes the file empty first, which until then stays what it was. */
static int push(struct dropped_file *f)
{
	struct iovec iov = {.iov_base = f->buf, .iov_len = f->used};
	int ret = f->started ? 0 : sink_start(f->sink);

	f->started = true;
	if (!ret && f->used)
		ret = sink_write(f->sink, &iov, 1, f->sent);
	f->sent = f->packets;
	f->used = 0;
	return ret;
}

/* Room for a block of at most len bytes. */
static int reserve(struct dropped_file *f, size_t len)
{
	return f->used + len > BUFFER ? push(f) : 0;
}

static int put_section(struct dropped_file *f)
{
	const struct ringtap_pcapng_section_options o = {.size = sizeof(o),
		.application = "ringtap " RINGTAP_VERSION,
		.comment = "packets that were received and not offered to any port, by the time of "
			   "their reception"};
	int n = ringtap_pcapng_section(f->buf, BUFFER, &o);

	if (n < 0)
		return n;
	f->used = (size_t)n;
	return 0;
}

int dropped_open(struct dropped_file **out, const char *path)
{
	const struct sink_options o = {.format = SINK_PCAPNG, .no_direct = true};
	struct dropped_file *f = calloc(1, sizeof(*f));
	int ret = f ? sink_open(&f->sink, path, &o) : -ENOMEM;

	*out = NULL;
	if (!ret) {
		f->path = path;
		*out = f;
		return put_section(f);
	}
	message_print("drops: cannot write '%s': %s", path, packet_file_error(ret));
	free(f);
	return ret;
}

static int put_interfaces(struct dropped_file *f, const struct fates_session *s)
{
	for (; f->interfaces < ringtap_capture_interface_count(s->cap); f->interfaces++) {
		int n, ret = reserve(f, BLOCK_MAX);

		if (ret)
			return ret;
		n = ringtap_pcapng_interface(
			s->cap, f->interfaces, f->buf + f->used, BUFFER - f->used, NULL);
		if (n < 0)
			return n;
		f->used += (size_t)n;
	}
	return 0;
}

static uint8_t *put_option(uint8_t *at, uint16_t code, uint16_t len, const void *value)
{
	uint32_t padded = (len + 3u) & ~3u;

	memcpy(at, &code, 2);
	memcpy(at + 2, &len, 2);
	memset(at + 4, 0, padded);
	memcpy(at + 4, value, len);
	return at + 4 + padded;
}

/* pcapng, section 4.3. */
static size_t put_block(uint8_t *to, const struct sample *p, const char *comment)
{
	const uint32_t flags = INBOUND;
	struct rt_epb e = {.type = RT_EPB_TYPE,
		.if_index = p->interface,
		.ts_high = (uint32_t)(p->ns >> 32),
		.ts_low = (uint32_t)p->ns,
		.cap_len = p->caplen,
		.orig_len = p->length};
	uint32_t padded = (p->caplen + 3) & ~3u;
	uint8_t *at = to + sizeof(e);

	memset(at, 0, padded);
	memcpy(at, p->data, p->caplen);
	at = put_option(at + padded, RT_OPTION_FLAGS, 4, &flags);
	at = put_option(at, RT_OPTION_QUEUE, 4, &p->queue);
	at = put_option(at, COMMENT, (uint16_t)strlen(comment), comment);
	at = put_option(at, 0, 0, ""); /* opt_endofopt */
	e.total_len = (uint32_t)(at + 4 - to);
	memcpy(to, &e, sizeof(e));
	memcpy(at, &e.total_len, 4);
	return e.total_len;
}

int dropped_put(
	struct dropped_file *f, const struct fates_session *s, const struct sample *p, bool at_end)
{
	char comment[128], age[32];
	int ret = put_interfaces(f, s);

	if (!ret)
		ret = reserve(f, RT_EPB_MIN + p->caplen + sizeof(comment) + 64);
	if (ret)
		return failed(f, ret);
	format_ns(age, (double)p->age_ns);
	if (at_end)
		snprintf(comment, sizeof(comment),
			"not offered to any port; free in its pool %s after its reception, when "
			"the capture ended",
			age);
	else
		snprintf(comment, sizeof(comment),
			"not offered to any port; noticed %s after its reception", age);
	f->used += put_block(f->buf + f->used, p, comment);
	f->packets++;
	return 0;
}

int dropped_flush(struct dropped_file *f)
{
	int ret = push(f);

	return ret ? failed(f, ret) : 0;
}

int dropped_close(struct dropped_file *f, const struct fates_session *s)
{
	uint64_t bytes;
	int ret, end;

	if (!s->start_ns) { /* it was not attached: the file stays as it was */
		sink_abandon(f->sink);
		free(f);
		return 0;
	}
	ret = put_interfaces(f, s);
	if (!ret)
		ret = push(f);
	end = sink_close(f->sink, &bytes, &f->packets);
	if (!ret)
		ret = end;
	if (ret)
		failed(f, ret);
	free(f);
	return ret;
}
